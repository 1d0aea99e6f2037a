# bash completion for agentwrap: its options and verbs; behind a COMMAND, that command's own completion.

__agentwrap_sessions() {
    local directory file
    if [[ -n ${AGENTWRAP_STATE_DIR-} ]]; then
        directory=$AGENTWRAP_STATE_DIR
    elif [[ ${XDG_RUNTIME_DIR-} == /* ]]; then
        directory=$XDG_RUNTIME_DIR/agentwrap
    else
        directory=${TMPDIR:-/tmp}/agentwrap-$EUID
    fi
    for file in "$directory"/*.json; do
        file=${file##*/}
        [[ $file == '*.json' ]] || printf '%s\n' "${file%.json}"
    done
}

__agentwrap_complete() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} index=1 run='' spec words=''
    [[ $cur != '=' ]] || cur=''
    [[ $prev != '=' || $COMP_CWORD -lt 2 ]] || prev=${COMP_WORDS[COMP_CWORD - 2]}
    COMPREPLY=()
    while ((index < COMP_CWORD)); do
        case ${COMP_WORDS[index]} in
            --notify | --agent | --name | --record | --config)
                ((index += 1))
                [[ ${COMP_WORDS[index]-} != '=' ]] || ((index += 1))
                ((index += 1))
                ;;
            --) run=1 && ((index += 1)) && break ;;
            -*) ((index += 1)) ;;
            run)
                [[ -z $run ]] || break
                run=1
                ((index += 1))
                ;;
            *) break ;;
        esac
    done
    if ((index >= COMP_CWORD)); then
        case $prev in
            --notify) words='auto none desktop terminal command bell' ;;
            --agent) words='claude codex pi opencode crush generic' ;;
            --record | --config) COMPREPLY=($(compgen -f -- "$cur")) && return ;;
            --name) return ;;
            *)
                if [[ $cur == -* ]]; then
                    words='--notify --no-inject --agent --name --record --record-input --config --version --help'
                else
                    [[ -n $run ]] ||
                        words='run list status watch wait report explain replay doctor init hooks reset demo path'
                    # Without a letter of it, the commands are too many to be of help.
                    [[ -n $cur ]] && COMPREPLY=($(compgen -c -- "$cur"))
                    [[ -n $cur ]] || words="$words claude codex pi opencode crush"
                fi
                ;;
        esac
        COMPREPLY+=($(compgen -W "$words" -- "$cur"))
        return
    fi
    if [[ -z $run ]]; then
        case ${COMP_WORDS[index]} in
            list | watch) words='--json --help' ;;
            status) words="--short --json --help $(__agentwrap_sessions)" ;;
            wait)
                case $prev in
                    --until) words='blocked done error idle exited' ;;
                    --timeout) return ;;
                    *) words="--until --timeout --json --help $(__agentwrap_sessions)" ;;
                esac
                ;;
            report)
                case $prev in
                    --kind) words='permission question auth' ;;
                    --msg | --msg-from | --title | --id | --app | --progress) return ;;
                    *) words='idle working blocked done error clear --kind --msg --msg-from --title --id --app --progress --help' ;;
                esac
                ;;
            explain) words="--json --help $(__agentwrap_sessions)" ;;
            replay)
                case $prev in
                    --agent) words='claude codex pi opencode crush generic' ;;
                    *)
                        words='--json --agent --help'
                        COMPREPLY=($(compgen -f -- "$cur"))
                        ;;
                esac
                ;;
            doctor) words='--notify --json --help' ;;
            init) words='bash zsh fish --alias --help' ;;
            hooks) words='claude codex opencode gemini copilot hermes --help' ;;
            reset | demo | path) words='--help' ;;
            *) run=1 ;;
        esac
        if [[ -z $run ]]; then
            COMPREPLY+=($(compgen -W "$words" -- "$cur"))
            return
        fi
    fi
    # The command's own completion, called as if agentwrap were not there.
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$index"
        return
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$index"
        return
    fi
    local command=${COMP_WORDS[index]} before
    spec=$(complete -p -- "$command" 2>/dev/null || complete -p -- "${command##*/}" 2>/dev/null)
    if [[ $spec == *' -F '* ]]; then
        before=${COMP_LINE%%"$command"*}
        COMP_LINE=${COMP_LINE#"$before"}
        ((COMP_POINT -= ${#before}))
        COMP_WORDS=("${COMP_WORDS[@]:index}")
        ((COMP_CWORD -= index))
        spec=${spec##* -F }
        "${spec%% *}" "$command" "$cur" "$prev"
    elif [[ $spec == 'complete '*' '* ]]; then
        # What bash printed is quoted as its own input.
        spec=${spec#complete }
        eval "COMPREPLY=(\$(compgen ${spec% *} -- \"\$cur\"))" 2>/dev/null
    else
        compopt -o default 2>/dev/null
    fi
}

complete -F __agentwrap_complete agentwrap
