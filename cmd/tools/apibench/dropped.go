package apibench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// droppedMetric counts the records that the program dropped.
const droppedMetric = "palimpsest_usage_events_dropped_total"

// allDropped returns for each route how many records its target's replicas have dropped so far; 0 without a
// counter. Records still waiting are not counted yet. If they are dropped later, they count for the next
// case.
func allDropped(ctx context.Context, place Place, routes []Route) ([]int, error) {
	counts := make([]int, len(routes))
	for i, route := range routes {
		target := route.Targets[place]
		for _, replica := range target.replicas() {
			if replica.Admin == "" {
				continue
			}
			count, err := dropped(ctx, replica.Admin)
			if err != nil {
				return nil, fmt.Errorf("%s: count dropped records: %w", route.Name, err)
			}
			counts[i] += count
		}
	}

	return counts, nil
}

// dropped reads droppedMetric at an admin address.
func dropped(ctx context.Context, admin string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, admin+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("make a request: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read the metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if text, is := strings.CutPrefix(lines.Text(), droppedMetric+" "); is {
			count, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0, fmt.Errorf("read %s: %w", droppedMetric, err)
			}
			return int(count), nil
		}
	}

	return 0, errors.Join(lines.Err(), errors.New(answer.Status+": the metrics have no "+droppedMetric))
}
