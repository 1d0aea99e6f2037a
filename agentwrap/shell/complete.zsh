#compdef agentwrap
# zsh completion for agentwrap: its options and verbs; behind a COMMAND, that command's own completion.

__agentwrap_sessions() {
    emulate -L zsh
    setopt null_glob
    local directory
    if [[ -n ${AGENTWRAP_STATE_DIR-} ]]; then
        directory=$AGENTWRAP_STATE_DIR
    elif [[ ${XDG_RUNTIME_DIR-} == /* ]]; then
        directory=$XDG_RUNTIME_DIR/agentwrap
    else
        directory=${TMPDIR:-/tmp}/agentwrap-$EUID
    fi
    local -a sessions=($directory/*.json(:t:r))
    _wanted sessions expl session compadd -a sessions
}

_agentwrap() {
    local curcontext=$curcontext state line run=$1
    local -A opt_args
    local -a verbs agents=(claude codex pi opencode crush)
    verbs=(
        'run:wrap a command that has the name of a verb'
        'list:live sessions, one a line'
        'status:the session that needs you most'
        'watch:a live table of sessions'
        'wait:wait until a session needs you, is done or gone'
        'report:report a status to the terminal'
        'explain:why a session is in its state'
        'replay:run a recording through the same engine'
        'doctor:check this terminal, the agents and the channels'
        'init:code for a shell: prompt, aliases, completion'
        'hooks:settings that make an agent report'
        'reset:undo terminal modes that were left on'
        'demo:a scripted agent, wrapped'
        'path:the state directory'
    )
    _arguments -C -S -A '-*' \
        '--notify=[channels in order of preference]:channels:_values -s , channel auto none desktop terminal command bell' \
        '--no-inject[add no options or environment to an agent]' \
        '--agent=[treat the command as this agent]:agent:(claude codex pi opencode crush generic)' \
        '--name=[label of the session]:label: ' \
        '--record=[write an asciicast of the session]:file:_files' \
        '--record-input[record what is typed, too]' \
        '--config=[read this configuration]:file:_files' \
        '(- *)--version[show the version]' \
        '(- *)'{-h,--help}'[show help]' \
        '*::command:->command' && return
    [[ $state == command ]] || return 1
    if (( CURRENT == 1 )); then
        [[ $run == run ]] || _describe -t verbs verb verbs
        _wanted commands expl command _command_names -e
        return
    fi
    if [[ $run != run ]]; then
        curcontext=${curcontext%:*:*}:agentwrap-$words[1]:
        case $words[1] in
            run) _agentwrap run && return ;;
            list|watch) _arguments '--json[for scripts]' '(- *)--help[show help]' && return ;;
            status) _arguments '--short[the text for a prompt]' '--json[as an object]' '(- *)--help[show help]' \
                '1:session:__agentwrap_sessions' && return ;;
            wait) _arguments '--until=[states to wait for]:states:_values -s , state blocked done error idle exited' \
                '--timeout=[seconds]:seconds: ' '--json[the session as an object]' '(- *)--help[show help]' '1:session:__agentwrap_sessions' && return ;;
            report) _arguments '--kind=[blocked on what]:kind:(permission question auth)' '--msg=[what it is about]:text: ' '--msg-from=[where in the JSON on standard input]:names: ' \
                '--title=[title of a part]:text: ' '--id=[a part of the work]:id: ' '--app=[what reports]:name: ' \
                '--progress=[per cent]:number: ' '(- *)--help[show help]' \
                '1:state:(idle working blocked done error clear)' && return ;;
            explain) _arguments '--json[one object a line]' '(- *)--help[show help]' '1:session:__agentwrap_sessions' && return ;;
            replay) _arguments '--json[one event a line]' '--agent=[the agent recorded]:agent:(claude codex pi opencode crush generic)' \
                '(- *)--help[show help]' '1:recording:_files' && return ;;
            doctor) _arguments '--notify[send one through each channel]' '--json[as an object]' '(- *)--help[show help]' && return ;;
            init) _arguments '--alias[functions that wrap the agents found]' '(- *)--help[show help]' '1:shell:(bash zsh fish)' && return ;;
            hooks) _arguments '(- *)--help[show help]' '1:agent:(claude codex opencode gemini copilot hermes)' && return ;;
            reset|demo|path) _arguments '(- *)--help[show help]' && return ;;
            *) _normal && return ;;
        esac
        return 1
    fi
    _normal
}

if [[ ${funcstack[1]-} == _agentwrap ]]; then
    _agentwrap "$@"
elif (( $+functions[compdef] )); then
    compdef _agentwrap agentwrap
else
    # compinit may come later in the user's file.
    __agentwrap_compdef() {
        precmd_functions=(${precmd_functions:#__agentwrap_compdef})
        (( $+functions[compdef] )) && compdef _agentwrap agentwrap
        unfunction __agentwrap_compdef
    }
    typeset -ga precmd_functions
    precmd_functions+=(__agentwrap_compdef)
fi
