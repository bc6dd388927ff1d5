package broker

import (
	"context"

	"github.com/opencluster/oclocks/subjects"
)

// cluster describes the whole cluster.
func (z *zone) cluster(context.Context, *subjects.Request) subjects.Body { return noPrimary() }
