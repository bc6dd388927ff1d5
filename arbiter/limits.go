package arbiter

// MaxNote is the most bytes of a note that goes with lease requests.
const MaxNote = 4096
