package control

// Leads says whether this node leads the control plane.
func (c *Control) Leads() bool { return c.arb.Status().Leading }
