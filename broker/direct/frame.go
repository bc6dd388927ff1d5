package direct

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxFrame is the size of the largest frame, in bytes.
const MaxFrame = 1 << 20

const (
	headBytes = 4
	readBytes = 64 << 10 // of the buffer that frames are cut out of; a longer one gets memory of its own

	blockBytes = 16 << 10 // of memory for frames, one allocation
	blockMost  = 2 << 10  // of a frame in it
)

// ErrFrame means that what came is not a frame.
var ErrFrame = errors.New("not a frame")

// appendFrame adds a frame to what is to be sent.
func appendFrame(dst, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body))) //nolint:gosec // at most MaxFrame
	return append(dst, body...)
}

// block is memory for frames, each part of which is given out once: frames of a few hundred bytes live for a batch, and not one by one.
type block []byte

// frame is memory for one, which is the caller's.
func (b *block) frame(size int) []byte {
	if size > blockMost {
		return make([]byte, size)
	}
	if size > len(*b) {
		*b = make([]byte, blockBytes)
	}
	frame := (*b)[:size:size]
	*b = (*b)[size:]
	return frame
}

// readFrames gives the frames of a stream until it ends or take refuses one; the error says why. Each is memory of its own, empty
// for a beat.
func readFrames(r io.Reader, take func(frame []byte) error) error {
	buf := make([]byte, readBytes)
	var memory block
	have := 0
	for {
		n, err := r.Read(buf[have:])
		have += n
		rest := buf[:have]
		for len(rest) >= headBytes {
			size := binary.BigEndian.Uint32(rest)
			if size > MaxFrame {
				return fmt.Errorf("%w: of %d bytes", ErrFrame, size)
			}
			end := headBytes + int(size)
			if end > len(rest) && end <= len(buf) {
				break // the rest of it comes with the next read
			}
			frame := memory.frame(int(size))
			if got := copy(frame, rest[headBytes:]); got < len(frame) {
				if _, err := io.ReadFull(r, frame[got:]); err != nil {
					return broken(err)
				}
				end = len(rest)
			}
			if err := take(frame); err != nil {
				return err
			}
			rest = rest[end:]
		}
		have = copy(buf, rest)
		if err != nil {
			if have > 0 {
				return broken(err)
			}
			return err
		}
	}
}

// broken is what a stream ended with in the middle of a frame.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("in the middle of a frame: %w", err)
}
