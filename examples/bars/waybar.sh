#!/bin/sh
# Waybar: one line of JSON at each change of any agentwrap session. Goes with waybar.jsonc; nothing is polled.
dir=${AGENTWRAP_STATE_DIR:-${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/agentwrap}}
file=${dir:-${TMPDIR:-/tmp}/agentwrap-$(id -u)}/summary

show() {
    blocked=0 error=0 done=0 text=
    { read -r blocked error done _ _ text <"$file"; } 2>/dev/null
    if [ "${blocked:-0}" != 0 ]; then class=blocked
    elif [ "${error:-0}" != 0 ]; then class=error
    elif [ "${done:-0}" != 0 ]; then class=done
    else class=working
    fi
    # Of signs and numbers alone: nothing in it has to be escaped.
    line="{\"text\": \"$text\", \"class\": \"$class\"}"
    if [ "$line" != "$last" ]; then printf '%s\n' "$line" || exit 0; fi
    last=$line
}

show
agentwrap watch --json | while read -r _; do
    sleep 0.3 # the summary follows a session within 0.2 s
    show
done
