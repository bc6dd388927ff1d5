package client

import (
	"context"

	"github.com/opencluster/oclocks/subjects"
)

// Cluster describes the nodes of the cluster and its buckets: those that req asks for (FirstBucket and LastBucket, with
// subjects.HasBuckets), or those that are not as they should be. It is for people and tools, not for every second.
func (c *Client) Cluster(ctx context.Context, req *subjects.Request) (*subjects.Cluster, error) {
	ask := *req
	ask.Op = subjects.OpCluster
	return get(ctx, c, &ask, new(subjects.Cluster))
}
