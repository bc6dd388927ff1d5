// Copyright 2009 The Go Authors. All rights reserved.
// Use of this source code is governed by a BSD-style
// license that can be found in the LICENSE file.

// These are the tests of sync.Mutex (src/sync/mutex_test.go of Go), run against the adapter that has its shape. Changed are
// where the lock comes from, the number of iterations (each one is a request to a broker), and the misuse tests: where
// package sync throws a fatal error, the adapters panic.

//nolint:staticcheck // empty critical sections are what is tested
package client_test

import (
	"strings"
	"testing"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/brokertest"
)

func hammerMutex(m *client.Locker, loops int, cdone chan bool) {
	for i := 0; i < loops; i++ {
		if i%3 == 0 {
			if m.TryLock() {
				m.Unlock()
			}
			continue
		}
		m.Lock()
		m.Unlock()
	}
	cdone <- true
}

func TestMutex(t *testing.T) {
	m := connect(t, brokertest.Start(t)).Mutex(t.Name()).Locker()

	m.Lock()
	if m.TryLock() {
		t.Fatalf("TryLock succeeded with mutex locked")
	}
	m.Unlock()
	if !m.TryLock() {
		t.Fatalf("TryLock failed with mutex unlocked")
	}
	m.Unlock()

	c := make(chan bool)
	for i := 0; i < 10; i++ {
		go hammerMutex(m, 100, c)
	}
	for i := 0; i < 10; i++ {
		<-c
	}
}

var misuseTests = []struct {
	name string
	f    func(c *client.Client)
}{
	{
		"Mutex.Unlock",
		func(c *client.Client) {
			mu := c.Mutex("misuse").Locker()
			mu.Unlock()
		},
	},
	{
		"Mutex.Unlock2",
		func(c *client.Client) {
			mu := c.Mutex("misuse").Locker()
			mu.Lock()
			mu.Unlock()
			mu.Unlock()
		},
	},
	{
		"RWMutex.Unlock",
		func(c *client.Client) {
			mu := c.RWMutex("misuse").Std()
			mu.Unlock()
		},
	},
	{
		"RWMutex.Unlock2",
		func(c *client.Client) {
			mu := c.RWMutex("misuse").Std()
			mu.RLock()
			mu.Unlock()
		},
	},
	{
		"RWMutex.Unlock3",
		func(c *client.Client) {
			mu := c.RWMutex("misuse").Std()
			mu.Lock()
			mu.Unlock()
			mu.Unlock()
		},
	},
	{
		"RWMutex.RUnlock",
		func(c *client.Client) {
			mu := c.RWMutex("misuse").Std()
			mu.RUnlock()
		},
	},
	{
		"RWMutex.RUnlock2",
		func(c *client.Client) {
			mu := c.RWMutex("misuse").Std()
			mu.Lock()
			mu.RUnlock()
		},
	},
	{
		"RWMutex.RUnlock3",
		func(c *client.Client) {
			mu := c.RWMutex("misuse").Std()
			mu.RLock()
			mu.RUnlock()
			mu.RUnlock()
		},
	},
}

func TestMutexMisuse(t *testing.T) {
	d := brokertest.Start(t)
	for _, test := range misuseTests {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t, d)
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, "unlock of unlocked") {
					t.Fatalf("did not panic with unlock of unlocked: %q", text)
				}
			}()
			test.f(c)
		})
	}
}
