package output

import (
	"strings"
	"unicode/utf8"
)

// maxPad bounds the width of a column: a longer cell juts out rather than push all others to the right. Users' keys fit, 56 characters.
const maxPad = 56

// table gathers rows and prints them with aligned columns. It may be printed piece by piece: the widths only grow.
type table struct {
	rows   [][]string
	widths []int
}

func (t *table) add(cells ...string) {
	t.rows = append(t.rows, cells)
	for i, cell := range cells {
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		if n := utf8.RuneCountInString(cell); n <= maxPad {
			t.widths[i] = max(t.widths[i], n)
		}
	}
}

// print prints the rows that were added since the last time.
func (t *table) print(p *Printer, indent string) {
	for _, row := range t.rows {
		line := indent
		for i, cell := range row {
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(cell))+2)
			}
		}
		p.printf("%s\n", line)
	}
	t.rows = t.rows[:0]
}
