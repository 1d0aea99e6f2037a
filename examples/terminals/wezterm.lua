-- WezTerm: how many agentwrap sessions wait for you, at the right of the tab bar.
--
-- Follows WezTerm's documentation; tried in Lua 5.4 with a stand-in for its `wezterm` module, WezTerm itself was not
-- to be had there. Put it beside wezterm.lua as agentwrap.lua, and there: require('agentwrap').setup()

local wezterm = require 'wezterm'

local M = {}

-- The state directory, as `agentwrap path` prints it.
local function directory()
  local own = os.getenv 'AGENTWRAP_STATE_DIR'
  if own and own ~= '' then
    return own
  end
  local runtime = os.getenv 'XDG_RUNTIME_DIR'
  if runtime and runtime ~= '' then
    return runtime .. '/agentwrap'
  end
  if not M.fallback then
    local ok, out = wezterm.run_child_process { 'id', '-u' }
    M.fallback = (os.getenv 'TMPDIR' or '/tmp') .. '/agentwrap-' .. (ok and out:gsub('%s', '') or '')
  end
  return M.fallback
end

-- The colour and the text of the summary; nil where nothing runs.
function M.read()
  local file = io.open(directory() .. '/summary')
  if not file then
    return nil
  end
  local line = file:read 'l' or ''
  file:close()
  local blocked, errors, done, text = line:match '^(%d+) (%d+) (%d+) %d+ %d+ (.+)$'
  if not text then
    return nil
  end
  local colour = 'Aqua'
  if blocked ~= '0' then
    colour = 'Yellow'
  elseif errors ~= '0' then
    colour = 'Red'
  elseif done ~= '0' then
    colour = 'Lime'
  end
  return colour, text
end

function M.setup()
  -- WezTerm asks once a second (`status_update_interval`).
  wezterm.on('update-status', function(window)
    local colour, text = M.read()
    window:set_right_status(text and wezterm.format {
      { Foreground = { AnsiColor = colour } },
      { Text = text .. ' ' },
    } or '')
  end)
end

return M
