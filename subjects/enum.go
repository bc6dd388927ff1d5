package subjects

// The words that stand for modes, kinds and so on in messages, by value. An empty word is never on the wire.
var (
	modeWords  = []string{Exclusive: "exclusive", Shared: "shared", Semaphore: "semaphore"}
	kindWords  = []string{KindDefault: "", Static: "static", Connection: "connection"}
	drainWords = []string{Hard: "hard", Soft: "soft", Timed: "timed"}
	acksWords  = []string{AcksDefault: "", AcksFirst: "first", AcksMajority: "majority", AcksAll: "all"}
	stateWords = []string{AnyState: "", Held: "held", Waited: "waited"}
)

// String is the word of the wire, or "" for a Mode that does not exist.
func (m Mode) String() string { return word(modeWords, uint8(m)) }

// String is the word of the wire, or "" for KindDefault.
func (k Kind) String() string { return word(kindWords, uint8(k)) }

// String is the word of the wire, or "" for a Drain that does not exist.
func (d Drain) String() string { return word(drainWords, uint8(d)) }

// String is the word of the wire, or "" for AcksDefault.
func (a Acks) String() string { return word(acksWords, uint8(a)) }

// String is the word of the wire, or "" for AnyState.
func (s State) String() string { return word(stateWords, uint8(s)) }

func word(words []string, i uint8) string {
	if int(i) >= len(words) {
		return ""
	}
	return words[i]
}

// findWord finds the value that a word stands for.
func findWord(words []string, text []byte) (value uint8, ok bool) {
	for i, w := range words {
		if w != "" && w == string(text) {
			return uint8(i), true
		}
	}
	return 0, false
}
