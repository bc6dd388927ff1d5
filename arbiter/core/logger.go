package core

import "fmt"

// logger passes on what Raft thinks worth a warning. What it thinks impossible becomes a panic, which guard catches.
type logger struct{ log func(text string) }

func (l logger) say(text string) {
	if l.log != nil {
		l.log(text)
	}
}

// Debug and Info are for those who debug Raft itself.
func (l logger) Debug(...any)          {}
func (l logger) Debugf(string, ...any) {}
func (l logger) Info(...any)           {}
func (l logger) Infof(string, ...any)  {}

func (l logger) Warning(v ...any)                 { l.say(fmt.Sprint(v...)) }
func (l logger) Warningf(format string, v ...any) { l.say(fmt.Sprintf(format, v...)) }
func (l logger) Error(v ...any)                   { l.say(fmt.Sprint(v...)) }
func (l logger) Errorf(format string, v ...any)   { l.say(fmt.Sprintf(format, v...)) }
func (l logger) Fatal(v ...any)                   { panic(fmt.Sprint(v...)) }
func (l logger) Fatalf(format string, v ...any)   { panic(fmt.Sprintf(format, v...)) }
func (l logger) Panic(v ...any)                   { panic(fmt.Sprint(v...)) }
func (l logger) Panicf(format string, v ...any)   { panic(fmt.Sprintf(format, v...)) }
