package cli

// Exit codes. Those from 64 on are of sysexits(3) where it has one; `lock` with a command otherwise passes on the
// command's own, or 128+n if signal n ended it, 126 if it cannot be run and 127 if there is none.
const (
	CodeOK          = 0
	CodeRefused     = 1  // the broker refused, for a reason that has no code of its own; check: the token is not current
	CodeUsage       = 64 // wrong flags, arguments, settings
	CodeUnavailable = 69 // no connection, no answer, no quorum
	CodeFailed      = 74 // printing failed
	CodeNotAcquired = 75 // the lock is held by others, or the wait is over
	CodeLost        = 76 // the lock, or the session, was lost
	CodeDenied      = 77 // the credentials or the user's role do not allow it
)

// CodesHelp explains the exit codes, for help texts.
const CodesHelp = `  0        done
  1        refused by the broker; check: the token is not current
  64       wrong flags, arguments or settings
  69       no broker answers, or it cannot serve now
  74       the output could not be written
  75       not acquired: held by others, or the wait is over
  76       the lock or the session was lost
  77       the credentials or the role do not allow it`
