package tenants

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The upper bounds of limits.
const (
	maxRequests    = 1_000_000
	maxTokens      = 1_000_000_000
	maxConcurrency = 100_000
	maxMicroUSD    = 10_000_000 * 1_000_000
)

// Quota bounds usage. Zero means no limit. Limits describes its numbers.
type Quota struct {
	RequestsPerMinute int
	TokensPerMinute   int   // sent, after the pipeline, and received
	Concurrency       int   // concurrent requests
	DayMicroUSD       int64 // at list prices, in a day of UTC
	MonthMicroUSD     int64 // at list prices, in a calendar month of UTC

	// AllowUnpriced lets a key with a budget use models without a known price, and counts them as free.
	AllowUnpriced bool
}

// Limit describes a number of a Quota. Forms, validation, the API and its description, the audit log, the
// stored form, headers and docs/api-keys.md derive from it.
type Limit struct {
	Name   string // in the API, forms, configuration files and the audit log
	Stored string // in the database
	Header string // after Ratelimit-Limit- and Ratelimit-Remaining-

	Label, Hint string // in forms and the API's description
	Noun, Per   string // "request" and "/min"; the noun is empty for money
	Counts      string // the counted unit, for the docs

	IsMoney   bool // in millionths of a US dollar, and in dollars for people and programs
	OfEndUser bool // also part of an end user's budget; other spenders except keys have money only

	most int64
	in   func(*Quota) (count *int, money *int64)
}

// QuotaLimits returns the limits of a quota.
func QuotaLimits() []Limit {
	return []Limit{
		{
			Name: "requests_per_minute", Stored: "requests_per_minute", Header: "Requests", Label: "Requests a minute", Noun: "request", Per: "/min",
			Counts: "requests to providers, also those to `/v1/models`", OfEndUser: true,
			most: maxRequests, in: func(q *Quota) (*int, *int64) { return &q.RequestsPerMinute, nil },
		},
		{
			Name: "tokens_per_minute", Stored: "tokens_per_minute", Header: "Tokens", Label: "Tokens a minute", Hint: "Sent and answered.", Noun: "token", Per: "/min",
			Counts:    "tokens sent, after the pipeline, and answered; cached ones too. A request begins if its prompt fits; its estimate and all that its answers may have are taken until it has ended, and put right by what the provider reports. Counts are free; relayed requests are not read and count nothing",
			OfEndUser: true, most: maxTokens, in: func(q *Quota) (*int, *int64) { return &q.TokensPerMinute, nil },
		},
		{
			Name: "concurrency", Stored: "concurrency", Header: "Concurrency", Label: "Requests at once", Noun: "request", Per: " at once",
			Counts: "requests under way, streams until they end. What a killed replica held comes free after 90 s",
			most:   maxConcurrency, in: func(q *Quota) (*int, *int64) { return &q.Concurrency, nil },
		},
		{
			Name: "budget_day_usd", Stored: "day_microusd", Header: "Day-Usd", Label: "USD a day", Hint: "At list prices, in UTC.", Per: " a day",
			Counts:  "cost as it is recorded, at your prices or else at list prices, by days of UTC, from $0.000001. [What a request can cost at most](#what-a-request-holds) is held while it is under way, and what it did cost is counted when it has ended. Of all that begin only the last can exceed a budget",
			IsMoney: true, OfEndUser: true, most: maxMicroUSD, in: func(q *Quota) (*int, *int64) { return nil, &q.DayMicroUSD },
		},
		{
			Name: "budget_month_usd", Stored: "month_microusd", Header: "Month-Usd", Label: "USD a month", Per: " a month",
			Counts:  "the same by calendar months of UTC",
			IsMoney: true, OfEndUser: true, most: maxMicroUSD, in: func(q *Quota) (*int, *int64) { return nil, &q.MonthMicroUSD },
		},
	}
}

// QuotaChange is a quota in the API: each limit by its name, money in dollars. Omitted limits are nil.
type QuotaChange struct {
	RequestsPerMinute *int     `json:"requests_per_minute,omitempty"`
	TokensPerMinute   *int     `json:"tokens_per_minute,omitempty"`
	Concurrency       *int     `json:"concurrency,omitempty"`
	DayUSD            *float64 `json:"budget_day_usd,omitempty"`
	MonthUSD          *float64 `json:"budget_month_usd,omitempty"`
}

// members calls do with each limit and its member.
func (c *QuotaChange) members(do func(limit *Limit, member reflect.Value)) {
	limits, members := QuotaLimits(), reflect.ValueOf(c).Elem()
	for i := range members.NumField() {
		name, _, _ := strings.Cut(members.Type().Field(i).Tag.Get("json"), ",")
		for n := range limits {
			if limits[n].Name == name {
				do(&limits[n], members.Field(i))
			}
		}
	}
}

// Apply sets the limits given in the change. The error is an Invalid.
func (c *QuotaChange) Apply(quota *Quota) (wrong error) {
	c.members(func(limit *Limit, member reflect.Value) {
		switch given := member.Interface().(type) {
		case *int:
			if given != nil {
				limit.Set(quota, int64(*given))
			}
		case *float64:
			if given != nil && wrong == nil {
				var micro int64
				micro, wrong = MicroUSD(limit.Name, *given)
				limit.Set(quota, micro)
			}
		}
	})
	return wrong
}

// Change returns a quota's limits for which is reports true.
func (q Quota) Change(is func(limit *Limit, amount int64) bool) (change QuotaChange) {
	change.members(func(limit *Limit, member reflect.Value) {
		amount := limit.Of(q)
		switch {
		case !is(limit, amount):
		case limit.IsMoney:
			member.Set(reflect.ValueOf(new(float64(amount) / 1e6)))
		default:
			member.Set(reflect.ValueOf(new(int(amount))))
		}
	})
	return change
}

// Of returns the limit of a quota, money in millionths of a dollar; 0 for no limit.
func (l *Limit) Of(quota Quota) int64 {
	count, money := l.in(&quota)
	if l.IsMoney {
		return *money
	}
	return int64(*count)
}

// Set sets the limit of a quota; Of then returns to.
func (l *Limit) Set(quota *Quota, to int64) {
	count, money := l.in(quota)
	if l.IsMoney {
		*money = to
	} else {
		*count = int(to)
	}
}

// Text formats an amount for forms, headers and the audit log.
func (l *Limit) Text(amount int64) string {
	if l.IsMoney {
		return USD(amount)
	}
	return strconv.FormatInt(amount, 10)
}

// Parse parses a typed amount; 0 for an empty text. The error is an Invalid.
func (l *Limit) Parse(text string) (int64, error) {
	if text = strings.ReplaceAll(strings.TrimSpace(text), ",", ""); text == "" {
		return 0, nil
	}
	if l.IsMoney {
		dollars, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Abs(dollars) > 1e12 {
			return 0, Invalid{Field: l.Name, Message: "must be an amount such as 25 or 7.50; empty for no limit"}
		}
		return MicroUSD(l.Name, dollars)
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0, Invalid{Field: l.Name, Message: "must be a whole number; empty for no limit"}
	}
	return int64(number), nil
}

// HasBudget reports whether the quota limits money.
func (q Quota) HasBudget() bool { return q.DayMicroUSD > 0 || q.MonthMicroUSD > 0 }

// IsUnlimited reports whether the quota has no limits.
func (q Quota) IsUnlimited() bool {
	q.AllowUnpriced = false
	return q == Quota{}
}

func (q Quota) validate() error {
	for _, limit := range QuotaLimits() {
		if amount := limit.Of(q); amount >= 0 && amount <= limit.most {
			continue
		}
		if limit.IsMoney {
			return Invalid{Field: limit.Name, Message: fmt.Sprintf("must be an amount from 0.000001 to %d, or 0 for no budget", limit.most/1_000_000)}
		}
		return Invalid{Field: limit.Name, Message: fmt.Sprintf("must be a whole number from 1 to %d, or 0 for no limit", limit.most)}
	}
	return nil
}

// fields adds the quota's fields for the audit log, with a prefix before each name.
func (q Quota) fields(to Fields, prefix string) {
	for _, limit := range QuotaLimits() {
		if amount := limit.Of(q); amount > 0 {
			to[prefix+limit.Name] = limit.Text(amount)
		}
	}
}

// Count is a limit on the number of something in a window of time.
type Count struct {
	Of     string        // the counted action and its source
	Most   int           // that there may be
	Window time.Duration // in that time
}

// Throttle limits the rate of actions.
type Throttle interface {
	// Check returns a TooMany if one of the counts is full.
	Check(ctx context.Context, counts ...Count) error

	// Take adds one to each count, or returns a TooMany at the first full one.
	Take(ctx context.Context, counts ...Count) error
}

// PlaceThrottle limits the failures of the place of the context's actor.
type PlaceThrottle struct {
	Throttle Throttle
	Most     int           // failures that there may be
	Window   time.Duration // in that time
}

// Check returns a TooMany if the actor's place has failed too often at something.
func (t PlaceThrottle) Check(ctx context.Context, at string) error {
	return t.Throttle.Check(ctx, t.failures(ctx, at))
}

// Failed counts a failure of the actor's place at something.
func (t PlaceThrottle) Failed(ctx context.Context, at string) error {
	if err := t.Throttle.Take(ctx, t.failures(ctx, at)); !errors.Is(err, ErrTooMany) {
		return err
	}
	return nil
}

func (t PlaceThrottle) failures(ctx context.Context, at string) Count {
	return Count{Of: at + " from " + ActorOf(ctx).Place(), Most: t.Most, Window: t.Window}
}
