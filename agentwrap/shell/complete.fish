# fish completion for agentwrap: its options and verbs; behind a COMMAND, that command's own completion.

# The words from the command or verb on, up to the one being typed; `run` and what is before it left out.
function __agentwrap_words
    set -l words (commandline -opc)
    set -e words[1]
    set -l run
    while set -q words[1]
        switch $words[1]
            case --notify --agent --name --record --config
                set -e words[1]
                set -q words[1]; and set -e words[1]
            case --
                set run run
                set -e words[1]
                break
            case '-*'
                set -e words[1]
            case run
                test -n "$run"; and break
                set run run
                set -e words[1]
            case '*'
                break
        end
    end
    printf '%s\n' "$run" $words
end

function __agentwrap_at_command
    set -l words (__agentwrap_words)
    test (count $words) -eq 1
end

# Whether the verb is one of the arguments.
function __agentwrap_verb
    set -l words (__agentwrap_words)
    test -z "$words[1]"; and set -q words[2]; and contains -- $words[2] $argv
end

function __agentwrap_in_command
    set -l words (__agentwrap_words)
    set -q words[2]; or return 1
    test -n "$words[1]"; or not contains -- $words[2] $__agentwrap_verbs
end

function __agentwrap_command
    set -l words (__agentwrap_words)
    complete -C (string join ' ' -- (string escape -- $words[2..-1]) (commandline -ct))
end

function __agentwrap_sessions
    set -l directory
    if test -n "$AGENTWRAP_STATE_DIR"
        set directory $AGENTWRAP_STATE_DIR
    else if string match -q '/*' -- "$XDG_RUNTIME_DIR"
        set directory $XDG_RUNTIME_DIR/agentwrap
    else if test -n "$TMPDIR"
        set directory $TMPDIR/agentwrap-(id -u)
    else
        set directory /tmp/agentwrap-(id -u)
    end
    for file in $directory/*.json
        string replace -r '.*/(.*)\.json$' '$1' -- $file
    end
end

set -g __agentwrap_verbs list status watch wait report explain replay doctor init hooks reset demo path

complete -c agentwrap -e
complete -c agentwrap -f
complete -c agentwrap -n __agentwrap_in_command -a '(__agentwrap_command)'

complete -c agentwrap -n __agentwrap_at_command -l notify -x -a 'auto none desktop terminal command bell' -d 'channels in order of preference'
complete -c agentwrap -n __agentwrap_at_command -l no-inject -d 'add no options or environment to an agent'
complete -c agentwrap -n __agentwrap_at_command -l agent -x -a 'claude codex pi opencode crush generic' -d 'treat the command as this agent'
complete -c agentwrap -n __agentwrap_at_command -l name -x -d 'label of the session'
complete -c agentwrap -n __agentwrap_at_command -l record -r -F -d 'write an asciicast of the session'
complete -c agentwrap -n __agentwrap_at_command -l record-input -d 'record what is typed, too'
complete -c agentwrap -n __agentwrap_at_command -l config -r -F -d 'read this configuration'
complete -c agentwrap -n __agentwrap_at_command -l version -d 'show the version'
complete -c agentwrap -n __agentwrap_at_command -s h -l help -d 'show help'
complete -c agentwrap -n __agentwrap_at_command -a '(__fish_complete_command)'
complete -c agentwrap -n __agentwrap_at_command -a run -d 'wrap a command that has the name of a verb'
complete -c agentwrap -n __agentwrap_at_command -a list -d 'live sessions, one a line'
complete -c agentwrap -n __agentwrap_at_command -a status -d 'the session that needs you most'
complete -c agentwrap -n __agentwrap_at_command -a watch -d 'a live table of sessions'
complete -c agentwrap -n __agentwrap_at_command -a wait -d 'wait until a session needs you, is done or gone'
complete -c agentwrap -n __agentwrap_at_command -a report -d 'report a status to the terminal'
complete -c agentwrap -n __agentwrap_at_command -a explain -d 'why a session is in its state'
complete -c agentwrap -n __agentwrap_at_command -a replay -d 'run a recording through the same engine'
complete -c agentwrap -n __agentwrap_at_command -a doctor -d 'check this terminal, the agents and the channels'
complete -c agentwrap -n __agentwrap_at_command -a init -d 'code for a shell: prompt, aliases, completion'
complete -c agentwrap -n __agentwrap_at_command -a hooks -d 'settings that make an agent report'
complete -c agentwrap -n __agentwrap_at_command -a reset -d 'undo terminal modes that were left on'
complete -c agentwrap -n __agentwrap_at_command -a demo -d 'a scripted agent, wrapped'
complete -c agentwrap -n __agentwrap_at_command -a path -d 'the state directory'

complete -c agentwrap -n "__agentwrap_verb $__agentwrap_verbs" -l help -d 'show help'
complete -c agentwrap -n '__agentwrap_verb list status watch wait explain replay doctor' -l json -d 'for scripts'
complete -c agentwrap -n '__agentwrap_verb status' -l short -d 'the text for a prompt'
complete -c agentwrap -n '__agentwrap_verb status wait explain' -a '(__agentwrap_sessions)' -d session
complete -c agentwrap -n '__agentwrap_verb wait' -l until -x -a 'blocked done error idle exited' -d 'states to wait for'
complete -c agentwrap -n '__agentwrap_verb wait' -l timeout -x -d seconds
complete -c agentwrap -n '__agentwrap_verb report' -a 'idle working blocked done error clear' -d state
complete -c agentwrap -n '__agentwrap_verb report' -l kind -x -a 'permission question auth' -d 'blocked on what'
complete -c agentwrap -n '__agentwrap_verb report' -l msg -x -d 'what it is about'
complete -c agentwrap -n '__agentwrap_verb report' -l msg-from -x -d 'where it is in the JSON on standard input'
complete -c agentwrap -n '__agentwrap_verb report' -l title -x -d 'title of a part'
complete -c agentwrap -n '__agentwrap_verb report' -l id -x -d 'a part of the work'
complete -c agentwrap -n '__agentwrap_verb report' -l app -x -d 'what reports'
complete -c agentwrap -n '__agentwrap_verb report' -l progress -x -d 'per cent'
complete -c agentwrap -n '__agentwrap_verb replay' -l agent -x -a 'claude codex pi opencode crush generic' -d 'the agent recorded'
complete -c agentwrap -n '__agentwrap_verb replay' -F
complete -c agentwrap -n '__agentwrap_verb doctor' -l notify -d 'send one through each channel'
complete -c agentwrap -n '__agentwrap_verb init' -a 'bash zsh fish' -d shell
complete -c agentwrap -n '__agentwrap_verb init' -l alias -d 'functions that wrap the agents found'
complete -c agentwrap -n '__agentwrap_verb hooks' -a 'claude codex opencode gemini copilot hermes' -d agent
