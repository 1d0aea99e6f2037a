#!/bin/sh
# Play a sound for agentwrap's notifications: one for what waits for you, another for what is finished.
#
#     [notify]
#     channels = ["command"]
#     command = ["/path/to/examples/sound.sh"]
#
# SOUND_BLOCKED, SOUND_DONE: files to play instead of the system's. Exits with 1 where nothing can play them,
# upon which agentwrap uses the next channel.

case $AGENTWRAP_EVENT in
blocked | error)
	linux=/usr/share/sounds/freedesktop/stereo/dialog-warning.oga
	mac=/System/Library/Sounds/Funk.aiff
	file=$SOUND_BLOCKED
	;;
*)
	linux=/usr/share/sounds/freedesktop/stereo/complete.oga
	mac=/System/Library/Sounds/Glass.aiff
	file=$SOUND_DONE
	;;
esac

for player in afplay pw-play paplay aplay; do
	command -v "$player" >/dev/null || continue
	case $player in
	afplay) default=$mac ;;
	*) default=$linux ;;
	esac
	if [ -r "${file:-$default}" ] && "$player" "${file:-$default}"; then
		exit 0
	fi
done
echo "sound.sh: no player (afplay, pw-play, paplay, aplay) played ${file:-${default:-anything}}" >&2
exit 1
