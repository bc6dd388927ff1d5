package output

import "strconv"

// fields gathers lines of a name and a value, the values in one column.
type fields struct {
	names, values []string
}

// add adds a line; a value of "" adds none.
func (f *fields) add(name, value string) {
	if value != "" {
		f.names, f.values = append(f.names, name), append(f.values, value)
	}
}

func (f *fields) addNumber(name string, n uint64) { f.add(name, strconv.FormatUint(n, 10)) }

// print prints the lines.
func (f *fields) print(p *Printer) {
	width := 0
	for _, name := range f.names {
		width = max(width, len(name))
	}
	for i, name := range f.names {
		p.printf("%-*s  %s\n", width, name, f.values[i])
	}
}
