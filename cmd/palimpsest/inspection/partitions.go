package inspection

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/migrations/partitions"
	"palimpsest/tenants"
)

// WatchPartitions adds a check of the partition for current requests.
func (i *Installation) WatchPartitions(query partitions.Query) {
	i.add(func(ctx context.Context) finding {
		list, err := partitions.List(ctx, query)
		if err != nil {
			return finding{check: tenants.Check{Name: "Partitions", Text: "are not known", Means: "The database does not say."}}
		}
		filling := partitions.Filling(list, time.Now())
		found := finding{
			check:  tenants.Check{Name: "Partitions", OK: true, Text: fmt.Sprintf("%d of requests", len(list))},
			values: []prometheus.Metric{valueOf(partitionCount, float64(len(list))), valueOf(partitionRows, float64(filling.Rows))},
		}
		if filling.Rows > overfull {
			found.check = tenants.Check{Name: "Partitions", Late: true, Text: hasTooMany(filling), Means: "The table of requests grows, and none of it is dropped. " + overfullAdvice}
		}
		return found
	})
}

const (
	// overfull is a number of requests that a partition reaches only if the next one was not created.
	overfull       = 2 * partitions.Large
	overfullAdvice = "Look whether a process runs jobs, and for the job partitions in its log."
)

func hasTooMany(filling partitions.Partition) string {
	return fmt.Sprintf("%s has %d million requests", filling.Name, filling.Rows/1_000_000)
}

// checkPartitions checks the partitions with the owner's login.
func checkPartitions(ctx context.Context, owner string) result {
	connection, err := pgx.Connect(ctx, owner)
	if err != nil {
		return failed("Check DATABASE_URL.", "%v", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	list, err := partitions.List(ctx, connection.Query)
	if isMissingTable(err) {
		return off("the next start makes the first")
	}
	if err != nil {
		return failed("Requests are recorded only into partitions. Restore the table from a backup.", "%v", err)
	}
	if filling := partitions.Filling(list, time.Now()); filling.Rows > overfull {
		return warned("Requests are recorded all the same. "+overfullAdvice, "%s", hasTooMany(filling))
	}
	return passed("%d of requests", len(list))
}
