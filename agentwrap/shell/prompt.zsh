# agentwrap: how many sessions wait for you, in front of the prompt. Undone by agentwrap_off.
# Nothing is started at a prompt: the summary is one line, read by the shell itself.

# The text is shown by %v, which takes an element of psvar as it is: neither % nor $ in it mean anything.
typeset -g __agentwrap_segment='%20(V.%F{%21v}%20v%f .)'

__agentwrap_update() {
    local __agentwrap_status=$? file blocked error done_ working idle text color
    emulate -L zsh
    if [[ -n ${AGENTWRAP_STATE_DIR-} ]]; then
        file=$AGENTWRAP_STATE_DIR/summary
    elif [[ ${XDG_RUNTIME_DIR-} == /* ]]; then
        file=$XDG_RUNTIME_DIR/agentwrap/summary
    else
        file=${TMPDIR:-/tmp}/agentwrap-$EUID/summary
    fi
    psvar[20]=
    if [[ -r $file ]] && { IFS=' ' read -r blocked error done_ working idle text <$file } 2>/dev/null; then
        text=${text//[[:cntrl:]]/}
        if [[ -n $text ]]; then
            if [[ -n ${NO_COLOR-} || ${TERM-} == dumb ]]; then color=default
            elif [[ $blocked != 0 ]]; then color=yellow
            elif [[ $error != 0 ]]; then color=red
            elif [[ $done_ != 0 ]]; then color=green
            else color=cyan; fi
            psvar[20]=$text
            psvar[21]=$color
        fi
    fi
    # Other code may set PROMPT anew at each prompt; it is to be first.
    if [[ $precmd_functions[-1] != __agentwrap_update ]]; then
        precmd_functions=(${precmd_functions:#__agentwrap_update} __agentwrap_update)
    fi
    if [[ ${PROMPT-} != *"$__agentwrap_segment"* ]]; then
        PROMPT=$__agentwrap_segment${PROMPT-}
    fi
    return $__agentwrap_status
}

agentwrap_off() {
    emulate -L zsh
    precmd_functions=(${precmd_functions:#__agentwrap_update})
    PROMPT=${PROMPT//${(b)__agentwrap_segment}/}
    psvar[20]= psvar[21]=
    local name
    for name in ${=__agentwrap_aliases-}; do
        unfunction $name 2>/dev/null
    done
    (( $+functions[compdef] )) && compdef -d agentwrap
    unset __agentwrap_segment __agentwrap_aliases
    unfunction __agentwrap_update _agentwrap __agentwrap_sessions agentwrap_off 2>/dev/null
    return 0
}

if [[ -o interactive ]]; then
    typeset -ga precmd_functions
    (( $precmd_functions[(Ie)__agentwrap_update] )) || precmd_functions+=(__agentwrap_update)
fi
