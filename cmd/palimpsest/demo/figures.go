package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
)

// Most of the team's requests are kept as figures only, as with X-Palimpsest-No-Store: written by the recorder's
// own statement, at list prices, without passing the proxy. Otherwise a team's work of months would take many
// minutes to make.
const (
	figuresOfADesk  = 76 // requests of a person on a workday, once the whole team works with the product
	figuresOfAgents = 40 // of the agents each night
	smallFigures    = 4  // of a person in a small demo, which should take only seconds to make
)

// figures are the requests of all days of which only figures are kept.
func (f *filling) figures() []entry {
	var diary []entry
	for number := range f.Days {
		random := rand.New(rand.NewPCG(f.Seed+1, uint64(number))) //nolint:gosec // no secret
		begins := f.dawn(number)
		ends := begins.Add(day - time.Minute)
		if last := f.Until.Add(-2 * time.Minute); ends.After(last) {
			ends = last
		}
		// At the end of the day, so that the clock has passed the requests.
		diary = append(diary, entry{ends, func(ctx context.Context) error {
			return f.record(ctx, slices.DeleteFunc(f.figuresOf(number, begins, random), func(e tenants.Exchange) bool {
				return e.At.After(ends) || e.At.Before(f.first())
			}))
		}})
	}
	return diary
}

// figuresOf are the figures of one day. The team takes the product up in the first two thirds of the demo.
func (f *filling) figuresOf(number int, begins time.Time, random *rand.Rand) []tenants.Exchange {
	isFree := begins.Weekday() == time.Saturday || begins.Weekday() == time.Sunday
	count := figuresOfADesk * min(3*f.Days, 2*f.Days/3+4*number) / (3 * f.Days)
	agents := figuresOfAgents
	if f.isSmall() {
		count, agents, isFree = smallFigures, smallFigures, false
	}
	var all []tenants.Exchange
	for _, desk := range desks() {
		for i := range count * (60 + random.IntN(80)) / 100 {
			if isFree && i > count/12 || desk.key == keyAgents {
				break
			}
			at := begins.Add(opens*time.Hour + time.Duration(random.IntN(int((shuts-opens)*time.Hour))))
			all = append(all, f.oneFigure(desk, at, random))
		}
	}
	for range agents {
		at := begins.Add(time.Duration(random.IntN(int(4 * time.Hour))))
		all = append(all, f.oneFigure(desk{keyAgents, codex, "gpt-5.1-codex"}, at, random))
	}
	return all
}

// oneFigure is one request of a coding agent in the middle of its work: a prompt that is mostly read from the
// cache, new results, and an answer with its reasoning.
func (f *filling) oneFigure(of desk, at time.Time, random *rand.Rand) tenants.Exchange {
	if of.key == keyCursor && at.Before(f.share(0.40)) {
		of.key = keyIntern
	}
	program := f.programs[of.program]
	cached, fresh, output := 26_000+random.IntN(70_000), 2_000+random.IntN(22_000), 700+random.IntN(6_600)
	if of.key == keyIntern || of.key == keyAgents { // both have a budget
		cached, output = cached/3, output/3
	}
	one := tenants.Exchange{ID: idAt(at, random), At: at}
	one.Request.APIKey, one.Request.Model, one.Request.Client, one.Request.Endpoint = uuid.MustParse(f.team.keys[of.key].id), of.model, of.program, program.format.path()
	one.Request.Class, one.Request.Stream, one.Request.Position, one.Answer.Status, one.Answer.Attempts = "main", true, 20+random.IntN(160), http.StatusOK, 1
	one.Request.Tags = tenants.Tags{tenants.ProjectTag: []string{"shop", "shop", "warehouse", "apps"}[random.IntN(4)]}
	one.Answer.Provider, one.Answer.ProviderKey = tenants.ProviderAnthropic, uuid.MustParse(f.team.providers["anthropic-prod"])
	if _, is := program.format.(anthropic); !is {
		one.Answer.Provider, one.Answer.ProviderKey = tenants.ProviderOpenAI, uuid.MustParse(f.team.providers["openai-prod"])
	}
	one.Times.Overhead = time.Duration(350+random.IntN(1200)) * time.Microsecond
	one.Times.TTFB = one.Times.Overhead + time.Duration(500+random.IntN(1400))*time.Millisecond
	one.Times.Duration = one.Times.TTFB + time.Duration(output)*time.Duration(3+random.IntN(4))*time.Millisecond
	one.Prompt.Compression, one.Prompt.TokensAfter, one.Prompt.Window, one.Prompt.Takes, one.Prompt.Levels = "none", cached+fresh, 120_000, 200_000, [4]int{one.Request.Position, 0, 0, 0}
	if random.IntN(140) == 0 {
		one.Answer.Status, one.Answer.ErrorFrom, one.Answer.ErrorType, one.Times.Duration = http.StatusServiceUnavailable, "provider", "overloaded_error", one.Times.TTFB
		one.Prompt.TokensBefore = one.Prompt.TokensAfter
		return one
	}
	price := f.models.Lookup(of.model).Price
	one.Tokens.CacheRead, one.Tokens.CacheWrite, one.Tokens.Output = cached, fresh, output
	if one.Answer.Provider == tenants.ProviderOpenAI {
		one.Tokens.Input, one.Tokens.CacheWrite = fresh, 0
	}
	one.Cost.CostMicroUSD = price.MicroUSD(one.Tokens.Input, one.Tokens.CacheRead, one.Tokens.CacheWrite, 0, one.Tokens.Output)
	f.compressFigure(&one, price, random)
	return one
}

// compressFigure makes a figure that of a request whose prompt was shortened, if its conversation is long enough.
func (f *filling) compressFigure(one *tenants.Exchange, price tokens.Price, random *rand.Rand) {
	one.Prompt.TokensBefore = one.Prompt.TokensAfter
	if one.Tokens.CacheRead < 52_000 {
		return
	}
	left := min(60_000+random.IntN(60_000), one.Prompt.Takes-5_000-one.Prompt.TokensAfter) // tokens of old turns that were not sent
	one.Prompt.Compression, one.Prompt.Projection, one.Prompt.TokensBefore = "frozen", 1, one.Prompt.TokensAfter+left
	one.Prompt.Levels = [4]int{one.Request.Position / 3, one.Request.Position / 4, one.Request.Position / 4, one.Request.Position - one.Request.Position/3 - 2*(one.Request.Position/4)}
	one.Cost.UnreadMicroUSD = price.MicroUSD(0, left, 0, 0, 0)
	rewrites := random.IntN(30) == 0
	if begins := f.hasty(); one.At.After(begins) && one.At.Before(begins.Add(20*time.Hour)) {
		rewrites = true // the day on which each prompt was shortened at once
	}
	if rewrites {
		one.Prompt.Compression, one.Tokens.MissCause, one.Tokens.MissedTokens = "epoch", "prefix_change_ours", one.Tokens.CacheRead
		one.Cost.RewrittenMicroUSD = price.MicroUSD(one.Tokens.CacheRead/2, 0, 0, 0, 0)
		one.Cost.CostMicroUSD += one.Cost.RewrittenMicroUSD
	}
	one.Cost.NetMicroUSD = one.Cost.UnreadMicroUSD - one.Cost.RewrittenMicroUSD
	if !rewrites && random.IntN(25) == 0 {
		one.Prompt.TokensBefore += one.Prompt.Takes
		one.Prompt.Reach, one.Cost.NetMicroUSD, one.Cost.UnreadMicroUSD, one.Cost.RewrittenMicroUSD = true, 0, 0, 0
	}
}

// atOnce is the number of exchanges that are written together.
const atOnce = 2000

// record writes exchanges of which only figures are kept.
func (f *filling) record(ctx context.Context, exchanges []tenants.Exchange) error {
	for len(exchanges) > 0 {
		batch := exchanges[:min(atOnce, len(exchanges))]
		if err := f.Record(ctx, f.team.workspace, batch); err != nil {
			return fmt.Errorf("record figures: %w", err)
		}
		f.noted += len(batch)
		exchanges = exchanges[len(batch):]
	}
	return nil
}

// idAt is a version 7 UUID of a time.
func idAt(at time.Time, random *rand.Rand) uuid.UUID {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(random.UintN(256)) //nolint:gosec // a byte
	}
	for i, ms := 5, at.UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
		id[i] = byte(ms)
	}
	id[6], id[8] = 0x70|id[6]&0x0f, 0x80|id[8]&0x3f
	return id
}
