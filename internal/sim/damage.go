package sim

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/opencluster/oclocks/bucket/chain"
)

// damaged is what arrives of a message of the chain: one in which a bit has flipped, or one of a node that speaks a newer version.
func (w *world) damaged(text []byte) []byte {
	if w.healed || w.mix.flip == 0 && w.mix.newer == 0 || len(text) < 10 {
		return text
	}
	chunk := chain.Kind(text[1]) == chain.Chunk
	switch {
	case chunk && w.chance(min(20*w.mix.flip, 0.1)):
		w.fault("bit flipped in a snapshot on its way")
		return w.flipped(text)
	case w.chance(w.mix.flip):
		w.fault("bit flipped in a message of the chain")
		return w.flipped(text)
	case w.chance(w.mix.newer):
		w.fault("message of a newer version")
		text = slices.Clone(text)
		text[0]++
		body := len(text) - 8
		binary.LittleEndian.PutUint64(text[body:], xxhash.Sum64(text[:body]))
	}
	return text
}

// damagedFrame is what arrives of a frame of Raft.
func (w *world) damagedFrame(raw []byte) []byte {
	if !w.healed && w.chance(w.mix.frames) {
		w.fault("bit flipped in a frame of Raft")
		return w.flipped(raw)
	}
	return raw
}

func (w *world) flipped(text []byte) []byte {
	text = slices.Clone(text)
	text[w.draw(len(text))] ^= 1 << w.draw(8)
	return text
}
