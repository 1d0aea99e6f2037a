# powerlevel10k: how many sessions wait for you. No process is started for it.
#
# Follows powerlevel10k's documentation of own segments; tried in zsh 5.9 with a stand-in for `p10k segment`,
# powerlevel10k itself was not to be had there. Source it in ~/.p10k.zsh, and name `agentwrap` in
# POWERLEVEL9K_LEFT_PROMPT_ELEMENTS or POWERLEVEL9K_RIGHT_PROMPT_ELEMENTS. Colours, in the same file, for example:
#     typeset -g POWERLEVEL9K_AGENTWRAP_BLOCKED_FOREGROUND=red

function prompt_agentwrap() {
  emulate -L zsh
  local dir=${AGENTWRAP_STATE_DIR:-${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/agentwrap}}
  local file=${dir:-${TMPDIR:-/tmp}/agentwrap-$EUID}/summary
  local blocked error done_ working idle text state=WORKING colour=cyan
  [[ -r $file ]] && IFS=' ' read -r blocked error done_ working idle text <$file && [[ -n $text ]] || return
  if [[ $blocked != 0 ]]; then state=BLOCKED colour=yellow
  elif [[ $error != 0 ]]; then state=ERROR colour=red
  elif [[ $done_ != 0 ]]; then state=DONE colour=green
  fi
  # The text goes through prompt expansion: a per cent sign is doubled.
  p10k segment -s $state -f $colour -t "${text//\%/%%}"
}

# The text it shows is the one of now: nothing to show before the prompt is ready.
function instant_prompt_agentwrap() { prompt_agentwrap; }
