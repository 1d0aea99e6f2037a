# oh-my-posh: how many sessions wait for you. Goes with oh-my-posh.json; no process is started for it.
#
# Follows oh-my-posh's documentation (set_poshcontext, text segments); the function was tried in bash 5.2 and zsh 5.9,
# oh-my-posh itself was not to be had there. Source this in ~/.bashrc or ~/.zshrc, before or after `oh-my-posh init`,
# and add the segment of oh-my-posh.json to a block of your theme. If you have a set_poshcontext, call
# agentwrap_poshcontext in it.

agentwrap_poshcontext() {
    local dir blocked error done_ working idle text=
    dir=${AGENTWRAP_STATE_DIR:-${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/agentwrap}}
    dir=${dir:-${TMPDIR:-/tmp}/agentwrap-$UID}
    [ -r "$dir/summary" ] && IFS=' ' read -r blocked error done_ working idle text <"$dir/summary"
    # Theme variables, read as .Env.POSH_AGENTWRAP; empty where nothing is to be shown.
    export POSH_AGENTWRAP=$text POSH_AGENTWRAP_BLOCKED=${blocked:-0} POSH_AGENTWRAP_ERROR=${error:-0}
}

if ! typeset -f set_poshcontext >/dev/null; then
    set_poshcontext() { agentwrap_poshcontext; }
fi
