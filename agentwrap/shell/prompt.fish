# agentwrap: how many sessions wait for you, in front of the prompt. Undone by agentwrap_off.
# Nothing is started at a prompt: the summary is one line, read by the shell itself.

function __agentwrap_segment
    set -l file
    if set -q AGENTWRAP_STATE_DIR[1]; and test -n "$AGENTWRAP_STATE_DIR"
        set file $AGENTWRAP_STATE_DIR/summary
    else if string match -q '/*' -- "$XDG_RUNTIME_DIR"
        set file $XDG_RUNTIME_DIR/agentwrap/summary
    else if test -n "$TMPDIR"
        set file $TMPDIR/agentwrap-$__agentwrap_uid/summary
    else
        set file /tmp/agentwrap-$__agentwrap_uid/summary
    end
    test -r $file; or return
    read -l -d ' ' blocked error done working idle text <$file; or return
    set text (string replace -ra '[[:cntrl:]]' '' -- "$text")
    test -n "$text"; or return
    set -l color cyan
    if test "$blocked" != 0
        set color yellow
    else if test "$error" != 0
        set color red
    else if test "$done" != 0
        set color green
    end
    if test -n "$NO_COLOR"; or test "$TERM" = dumb
        printf '%s ' $text
    else
        set_color $color
        printf '%s' $text
        set_color normal
        printf ' '
    end
end

function __agentwrap_return
    return $argv[1]
end

# A theme may define fish_prompt anew, at any time.
function __agentwrap_wrap --on-event fish_prompt
    set -l was $status
    functions -q fish_prompt; or return $was
    if not string match -q '*__agentwrap_segment*' -- (functions fish_prompt)
        functions -e __agentwrap_prompt
        functions -c fish_prompt __agentwrap_prompt
        function fish_prompt
            set -l was $status
            __agentwrap_segment
            __agentwrap_return $was
            __agentwrap_prompt
        end
    end
    return $was
end

function agentwrap_off
    if functions -q __agentwrap_prompt
        functions -e fish_prompt
        functions -c __agentwrap_prompt fish_prompt
    end
    for name in $__agentwrap_aliases
        functions -e $name
    end
    complete -e -c agentwrap
    set -e __agentwrap_aliases
    set -e __agentwrap_uid
    set -e __agentwrap_verbs
    functions -e __agentwrap_segment __agentwrap_return __agentwrap_wrap __agentwrap_prompt
    functions -e __agentwrap_sessions __agentwrap_at_command __agentwrap_in_command __agentwrap_command
    functions -e __agentwrap_verb __agentwrap_words agentwrap_off
end
