package tenantsdb

import (
	"fmt"
	"math"
	"time"

	"palimpsest/tenants"
)

const (
	firstBucket = 32 * time.Microsecond // smaller values are in bucket 0
	perDoubling = 8                     // buckets, from there on
)

// histogram counts exchanges by the bucket of their overhead, as the database's overhead_bucket defines it:
// bucket i begins at 32 µs · 2^((i−1)/8), bucket 0 at 0.
type histogram []int64

// parseHistograms returns the sum of histograms in the form "0,3,1;2". A month may have thousands.
func parseHistograms(text string) (histogram, error) {
	var sum histogram
	bucket, count := 0, int64(0)
	for i := range len(text) + 1 {
		if i < len(text) && text[i] >= '0' && text[i] <= '9' {
			count = 10*count + int64(text[i]-'0')
			continue
		}
		if i < len(text) && text[i] != ',' && text[i] != ';' {
			return nil, fmt.Errorf("histogram of overheads: %q at %d", text[i], i)
		}
		if bucket == len(sum) {
			sum = append(sum, 0)
		}
		sum[bucket] += count
		bucket, count = bucket+1, 0
		if i < len(text) && text[i] == ';' {
			bucket = 0
		}
	}
	return sum, nil
}

// overhead returns the histogram's Overhead.
func (h histogram) overhead() tenants.Overhead {
	measured := int64(0)
	for _, count := range h {
		measured += count
	}
	return tenants.Overhead{P50: h.quantile(0.50, measured), P99: h.quantile(0.99, measured), Measured: measured}
}

// quantile returns the middle of the bucket of the nearest rank: its geometric mean, which deviates by a
// factor of at most 2^(1/16) = 1.044.
func (h histogram) quantile(part float64, measured int64) time.Duration {
	rank := int64(math.Ceil(part * float64(measured)))
	for i, count := range h {
		if rank -= count; rank > 0 || count == 0 {
			continue
		}
		if i == 0 {
			return firstBucket / 2
		}
		return time.Duration(float64(firstBucket) * math.Exp2((float64(i)-0.5)/perDoubling))
	}
	return 0
}
