package reign

import "github.com/opencluster/oclocks/arbiter/plan"

// maxOrders go in one message.
const maxOrders = 2048

// orders are what the planner wants of the nodes, in the order in which they are named first; each fits into one message.
func orders(out *plan.Output) (list []Order) {
	byNode := map[uint64]*Order{}
	var nodes []uint64
	of := func(number uint64) *Order {
		o := byNode[number]
		if o == nil {
			o = &Order{Node: number}
			byNode[number] = o
			nodes = append(nodes, number)
		}
		return o
	}
	for _, s := range out.Seal {
		o := of(s.Node)
		o.Seal = append(o.Seal, s)
	}
	for _, h := range out.HandOver {
		o := of(h.Node)
		o.HandOver = append(o.HandOver, h)
	}
	for _, number := range nodes {
		list = append(list, parts(byNode[number])...)
	}
	return list
}

func parts(o *Order) (list []Order) {
	if len(o.Seal)+len(o.HandOver) <= maxOrders {
		return []Order{*o}
	}
	for at := 0; at < len(o.Seal); at += maxOrders {
		list = append(list, Order{Node: o.Node, Seal: o.Seal[at:min(at+maxOrders, len(o.Seal))]})
	}
	for at := 0; at < len(o.HandOver); at += maxOrders {
		list = append(list, Order{Node: o.Node, HandOver: o.HandOver[at:min(at+maxOrders, len(o.HandOver))]})
	}
	return list
}
