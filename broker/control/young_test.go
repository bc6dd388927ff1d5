package control

import (
	"fmt"
	"testing"
)

// Who founded a cluster leaves it as soon as there is somebody else: those who stay have a majority, whether they have been
// promoted by then or not.
func TestAYoungClusterOutlivesItsFounder(t *testing.T) {
	for count := 2; count <= 4; count++ {
		t.Run(fmt.Sprint(count, " nodes"), func(t *testing.T) {
			k := newCluster(t)
			first := k.config(1)
			first.Found = k.found
			nodes := []*node{k.join(first)}
			for i := 2; i <= count; i++ {
				nodes = append(nodes, k.join(k.config(i)))
			}
			if err := nodes[0].c.Leave(within(t)); err != nil {
				t.Fatal(err)
			}
			nodes[0].close()
			lead, _ := leader(t, nodes[1:]...)
			for _, n := range nodes[1:] {
				n.change(setting("max_lease", fmt.Sprint(20+lead.number(), "s")))
			}
		})
	}
}
