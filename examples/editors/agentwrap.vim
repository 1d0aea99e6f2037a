" Vim, Neovim: how many agentwrap sessions wait for you, in the status line, and agents in the editor's terminal.
"
" Tried with Vim 9.0 and Neovim 0.7.2. Copy it to ~/.vim/plugin/ or ~/.config/nvim/plugin/.
" :Agentwrap claude    starts an agent in a terminal of the editor, wrapped

if exists('g:loaded_agentwrap') | finish | endif
let g:loaded_agentwrap = 1

" The state directory, as `agentwrap path` prints it.
if !empty($AGENTWRAP_STATE_DIR)
  let s:directory = $AGENTWRAP_STATE_DIR
elseif !empty($XDG_RUNTIME_DIR)
  let s:directory = $XDG_RUNTIME_DIR . '/agentwrap'
else
  let s:directory = (empty($TMPDIR) ? '/tmp' : $TMPDIR) . '/agentwrap-' . trim(system('id -u'))
endif

let g:agentwrap_text = ''

function! s:look(...) abort
  let l:text = ''
  if filereadable(s:directory . '/summary')
    let l:lines = readfile(s:directory . '/summary', '', 1)
    let l:text = empty(l:lines) ? '' : matchstr(l:lines[0], '^\%(\d\+ \)\{5}\zs.*')
  endif
  if l:text !=# g:agentwrap_text
    let g:agentwrap_text = l:text
    redrawstatus!
  endif
endfunction

" For your own 'statusline': %{g:agentwrap_text}. What an expression gives is text, nothing in it is an item.
if empty(&statusline)
  set statusline=%<%f\ %h%m%r%=%{g:agentwrap_text}\ %-14.(%l,%c%V%)\ %P
else
  set statusline+=\ %{g:agentwrap_text}
endif

call s:look()
call timer_start(1000, function('s:look'), {'repeat': -1})

if has('nvim')
  command! -nargs=+ -complete=shellcmd Agentwrap new | execute 'terminal agentwrap' <q-args> | startinsert
else
  command! -nargs=+ -complete=shellcmd Agentwrap execute 'terminal agentwrap' <q-args>
endif
