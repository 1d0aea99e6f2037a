#!/bin/sh
# Run several agents side by side in tmux, say who needs you, and end when all are done.
#
#     three-agents.sh 'claude "fix the tests"' 'codex "write the changelog"' 'pi "update the man page"'
#
# Each gets a window of the tmux session `agents`; look at them with: tmux attach -t agents
# Exit code: 0 when every agent finished its turn, 1 when one failed or left without.
set -eu
[ $# -gt 0 ] || { echo "usage: ${0##*/} COMMAND..." >&2; exit 2; }

tmux has-session -t agents 2>/dev/null || tmux new-session -d -s agents -n start

follow() { # WINDOW: wait for the agent in it
    session=
    while [ -z "$session" ]; do
        sleep 0.1
        session=$(tmux display-message -p -t "$1" '#{@agentwrap_session}' 2>/dev/null) || return 1
    done
    while state=$(agentwrap wait "$session" --until blocked,done,error); do
        agentwrap status "$session" 2>/dev/null || echo "$session  $state"
        case $state in
            done) return 0 ;;
            error) return 1 ;;
        esac
        agentwrap wait "$session" --until working,idle,done,error >/dev/null || break
    done
    return 1
}

waiting=
for command; do
    window=$(tmux new-window -d -P -F '#{pane_id}' -t agents: "agentwrap $command")
    follow "$window" &
    waiting="$waiting $!"
done

failed=0
for one in $waiting; do
    wait "$one" || failed=1
done
case $failed in
    0) echo 'all agents are done' ;;
    *) echo 'not all agents are done: one failed or left' ;;
esac
exit "$failed"
