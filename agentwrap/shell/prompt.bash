# agentwrap: how many sessions wait for you, in front of the prompt. Undone by agentwrap_off.
# Nothing is started at a prompt: the summary is one line, read by the shell itself.

__agentwrap_update() {
    local __agentwrap_status=$? file blocked error done_ working idle text color
    if [[ -n ${AGENTWRAP_STATE_DIR-} ]]; then
        file=$AGENTWRAP_STATE_DIR/summary
    elif [[ ${XDG_RUNTIME_DIR-} == /* ]]; then
        file=$XDG_RUNTIME_DIR/agentwrap/summary
    else
        file=${TMPDIR:-/tmp}/agentwrap-$EUID/summary
    fi
    __agentwrap_segment=
    if [[ -r $file ]] && { IFS=' ' read -r blocked error done_ working idle text <"$file"; } 2>/dev/null; then
        text=${text//[[:cntrl:]]/}
        if [[ -n $text ]]; then
            if [[ $blocked != 0 ]]; then color='33;1'; elif [[ $error != 0 ]]; then color='31;1'
            elif [[ $done_ != 0 ]]; then color=32; else color=36; fi
            # \001 and \002 tell readline what takes no column. The text is put in place by the expansion of
            # a variable, whose value bash takes as it is.
            if [[ -n ${NO_COLOR-} || ${TERM-} == dumb ]]; then
                __agentwrap_segment="$text "
            else
                __agentwrap_segment=$'\001\e['"$color"$'m\002'"$text"$'\001\e[0m\002 '
            fi
        fi
    fi
    # Other code may set PS1 anew at each prompt.
    if [[ ${PS1-} != *'${__agentwrap_segment-}'* ]]; then
        PS1='${__agentwrap_segment-}'${PS1-}
    fi
    return "$__agentwrap_status"
}

agentwrap_off() {
    local index name part=$'\n''__agentwrap_update'
    if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]]; then
        for index in "${!PROMPT_COMMAND[@]}"; do
            if [[ ${PROMPT_COMMAND[index]} == __agentwrap_update ]]; then
                unset "PROMPT_COMMAND[$index]"
            else
                PROMPT_COMMAND[index]=${PROMPT_COMMAND[index]//"$part"/}
            fi
        done
    else
        PROMPT_COMMAND=${PROMPT_COMMAND//"$part"/}
        [[ $PROMPT_COMMAND != __agentwrap_update ]] || unset PROMPT_COMMAND
    fi
    part='${__agentwrap_segment-}'
    PS1=${PS1//"$part"/}
    for name in ${__agentwrap_aliases-}; do
        unset -f "$name"
    done
    complete -r agentwrap 2>/dev/null
    unset -v __agentwrap_segment __agentwrap_aliases
    unset -f __agentwrap_update __agentwrap_complete __agentwrap_sessions agentwrap_off
}

if [[ $- == *i* ]]; then
    if [[ ${PROMPT_COMMAND[*]-} != *__agentwrap_update* ]]; then
        # Before 5.1 an array's first element alone is run.
        if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]] &&
            ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
            PROMPT_COMMAND+=(__agentwrap_update)
        elif [[ -n ${PROMPT_COMMAND-} ]]; then
            PROMPT_COMMAND+=$'\n''__agentwrap_update'
        else
            PROMPT_COMMAND=__agentwrap_update
        fi
    fi
fi
