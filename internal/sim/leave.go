package sim

import "github.com/opencluster/oclocks/broker/control/reign"

// leave is Control.Leave and Daemon.stop: the node's buckets are handed over, then it goes, and comes back after a while.
func (p *process) leave() {
	p.leaving = true
	p.w.tell("%v leaves", p.m)
	until := p.m.clock() + 5*second // leaveTime
	var step func()
	step = func() {
		number := p.identity.Number
		if reign.Primaries(p.shared(), number) == 0 || p.m.clock() >= until {
			p.abdicate()
			return
		}
		for _, o := range p.w.machines {
			if o.p != nil && o.p.reign != nil && o.p.reign.listening() {
				p.w.send(p.m, o, "leaving", func(q *process) {
					if q.reign != nil {
						q.reign.leave(number)
					}
				})
			}
		}
		p.timer(250*ms, step)
	}
	step()
}

// abdicate is the end of Control.Leave.
func (p *process) abdicate() {
	if p.arb.node.Leading() {
		p.transfer()
	}
	p.timer(300*ms, func() {
		if err := p.arb.identify(0); err != nil {
			p.w.fail("%v: %v", p.m, err)
		}
		id, start := p.m.id, p.start
		p.m.others(func(o *machine) {
			p.w.send(p.m, o, "away", func(q *process) { q.desk.farewell(id, start) })
		})
		p.timer(5*ms, func() {
			if err := p.keeping.Close(true); err != nil {
				p.m.disk.files.suffer(err)
			}
			p.die("stopped")
			p.m.restart(p.w.between(100*ms, 3*second))
		})
	})
}
