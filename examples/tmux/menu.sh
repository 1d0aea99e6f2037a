#!/bin/sh
# A tmux menu of the panes with agentwrap sessions, those that need you first, to jump to one.
# A menu expands its entries as formats once more; agentwrap has freed the messages of what means anything there.
order='#{?#{==:#{@agentwrap_state},blocked},1,#{?#{==:#{@agentwrap_state},error},2,#{?#{==:#{@agentwrap_state},done},3,#{?#{==:#{@agentwrap_state},working},4,5}}}}'
list=$(tmux list-panes -a -f '#{@agentwrap_session}' \
    -F "$order #{@agentwrap_since} #{pane_id} #{p9:@agentwrap_state}#{p10:@agentwrap_agent}#{=50:@agentwrap_message}" | sort -n)
[ -n "$list" ] || exec tmux display-message 'no agentwrap session runs in this tmux'
set --
key=1
while read -r _ _ pane text; do
    # An entry that begins with a minus is one that cannot be chosen.
    set -- "$@" "$text" "$key" "switch-client -t $pane"
    if [ "$key" -lt 9 ]; then key=$((key + 1)); else key=''; fi
done <<END
$list
END
exec tmux display-menu -T ' agentwrap ' -x C -y C "$@"
