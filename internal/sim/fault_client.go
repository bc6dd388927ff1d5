package sim

// simpleKinds are what happens to clients without a session. What happens to their messages is in client.go.
var simpleKinds = []kind{
	{"client killed", func(w *world) bool {
		if len(w.clients) == 0 {
			return false
		}
		c := w.clients[w.draw(len(w.clients))]
		if len(c.asks) == 0 {
			return false
		}
		c.abandon()
		c.busy = 0
		c.life++
		return true
	}},
	{"burst of requests", func(w *world) bool {
		for range 5 + w.draw(30) {
			w.after(w.between(0, 20*ms), func() {
				if !w.healed && len(w.clients) > 0 {
					w.clients[w.draw(len(w.clients))].wish()
				}
			})
		}
		return len(w.clients) > 0
	}},
	{"client stands still", func(w *world) bool {
		if len(w.clients) == 0 {
			return false
		}
		w.clients[w.draw(len(w.clients))].paused = w.now + w.between(50*ms, 5*second)
		return true
	}},
}
