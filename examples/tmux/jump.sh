#!/bin/sh
# Jump to the tmux pane whose session has waited for you longest: blocked before error before done.
for state in blocked error done; do
    pane=$(tmux list-panes -a -f "#{==:#{@agentwrap_state},$state}" -F '#{@agentwrap_since} #{pane_id}' |
        sort -n | head -n 1 | cut -d ' ' -f 2)
    if [ -n "$pane" ]; then
        exec tmux switch-client -t "$pane"
    fi
done
exec tmux display-message 'no session waits for you'
