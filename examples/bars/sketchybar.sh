#!/bin/sh
# SketchyBar: how many agentwrap sessions wait for you.
#
# Follows SketchyBar's documentation; tried with a stand-in for its command, SketchyBar runs on macOS only. Copy it to
# ~/.config/sketchybar/plugins/agentwrap.sh, make it executable, and in sketchybarrc:
#     sketchybar --add item agentwrap right \
#                --set agentwrap update_freq=2 script="$PLUGIN_DIR/agentwrap.sh"
dir=${AGENTWRAP_STATE_DIR:-${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/agentwrap}}
blocked=0 error=0 done=0 text=
{ read -r blocked error done _ _ text <"${dir:-${TMPDIR:-/tmp}/agentwrap-$(id -u)}/summary"; } 2>/dev/null
if [ "${blocked:-0}" != 0 ]; then colour=0xffe5c07b
elif [ "${error:-0}" != 0 ]; then colour=0xffe06c75
elif [ "${done:-0}" != 0 ]; then colour=0xff98c379
else colour=0xff56b6c2
fi
if [ -n "$text" ]; then drawing=on; else drawing=off; fi
sketchybar --set "${NAME:-agentwrap}" drawing="$drawing" label="$text" label.color="$colour"
