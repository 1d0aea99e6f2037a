#!/bin/sh
# Print the text for a status line: how many agentwrap sessions wait for you. Empty where nothing runs.
dir=${AGENTWRAP_STATE_DIR:-${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/agentwrap}}
read -r blocked error done working idle text 2>/dev/null <"${dir:-${TMPDIR:-/tmp}/agentwrap-$(id -u)}/summary" || exit 0
printf '%s\n' "$text"
