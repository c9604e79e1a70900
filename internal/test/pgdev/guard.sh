# Runs one command and ends it when standard input closes.
#
#   sh guard.sh DIR SIGNAL COMMAND...
#
# Standard input is a pipe whose other end only the parent holds. A line on it
# names a signal for the command, or is "keep": leave DIR to the next guard.
# End of file means that the parent is gone or done, however it went: SIGNAL to
# the command, and DIR is removed unless it is empty. The command's exit status is written to
# standard output, which closes with it; what the command says goes to standard
# error, which is its log.
dir=$1 signal=$2
shift 2
trap '' HUP INT TERM # a terminal or a supervisor ends the parent, never us
trap '' PIPE # nobody reads the status when the parent is dead, and there is more to do

exec 3<&0 # a background command is given /dev/null as its standard input
"$@" </dev/null >&2 3<&- &
child=$!

(
	exec >&-
	while read -r word <&3; do
		[ "$word" = keep ] && exit 0
		kill -s "$word" "$child" 2>/dev/null
	done
	# The shell starts the command with INT and QUIT ignored. A signal that arrives
	# before the command has installed its handler is lost, so it is sent again.
	while kill -s "$signal" "$child" 2>/dev/null; do sleep 1; done
	exit 1
) &
reader=$!
exec 3<&-

wait "$child"
echo $? 2>/dev/null
exec >&-
wait "$reader" && exit 0
[ -n "$dir" ] || exit 0
# A grandchild may still be writing its last file: try once more.
rm -rf "$dir" 2>/dev/null || { sleep 1; rm -rf "$dir"; }
