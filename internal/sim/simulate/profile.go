package main

import (
	"errors"
	"os"
	"runtime/pprof"
)

// profile begins the profiles that were asked for. end writes them.
func profile() (end func() error, err error) {
	var file *os.File
	if *cpu != "" {
		if file, err = os.Create(*cpu); err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return func() error {
		if file != nil {
			pprof.StopCPUProfile()
			if err := file.Close(); err != nil {
				return err
			}
		}
		if *heap == "" {
			return nil
		}
		out, err := os.Create(*heap)
		if err != nil {
			return err
		}
		return errors.Join(pprof.Lookup("allocs").WriteTo(out, 0), out.Close())
	}, nil
}
