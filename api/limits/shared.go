package limits

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"palimpsest/tenants"
)

// lease is how long a request counts as under way in Redis unless its replica says
// again that it is: one that was killed must not hold its place for ever.
const lease = 90 * time.Second

// How long spend is kept in Redis: longer than its day and month last.
const (
	dayKept   = 48 * time.Hour
	monthKept = 33 * 24 * time.Hour
)

// shared counts in Redis, for all replicas together. Each call is one script, and
// so one step for all replicas. Time is that of Redis.
type shared struct {
	client              redis.UniversalClient
	admission, claiming *redis.Script
	settling            *redis.Script
}

func newShared(client redis.UniversalClient) *shared {
	return &shared{
		client: client, admission: redis.NewScript(clockScript + admitScript),
		claiming: redis.NewScript(clockScript + takeScript), settling: redis.NewScript(clockScript + settleScript),
	}
}

// Numbers are written in full: Lua would round large ones. Times are microseconds.
//
//nolint:dupword // Lua
const clockScript = `
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local minute = 60000000
local function number(key) return tonumber(redis.call('GET', key) or '0') end
local function keep(key, value, milliseconds) redis.call('SET', key, string.format('%.0f', value), 'PX', string.format('%.0f', milliseconds)) end
local function wait(key, limit, n) return math.max(0, math.max(number(key), now) + n * minute / limit - now - minute) end
local function add(key, limit, n)
  local later = math.max(number(key), now) + n * minute / limit
  if later > now then keep(key, later, (later - now) / 1000 + 1) else redis.call('DEL', key) end
end
local function left(key, limit)
  return math.min(limit, math.max(0, math.floor((now + minute - math.max(number(key), now)) * limit / minute)))
end
`

// KEYS: requests, tokens, running, day, month. ARGV: requests, tokens a minute,
// concurrency, day, month, ticket, lease, then what is known to be spent and for how
// long it is kept, of the day and of the month.
//
//nolint:dupword // Lua
const admitScript = `
local requests, tokens, most, day, month = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local function spent(key, limit, known, kept)
  if limit == 0 then return 0 end
  local value = number(key)
  if value < known then value = known; keep(key, value, kept) end
  return value
end
local inday, inmonth = spent(KEYS[4], day, tonumber(ARGV[8]), ARGV[9]), spent(KEYS[5], month, tonumber(ARGV[10]), ARGV[11])
local running = 0
if most > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now))
  running = redis.call('ZCARD', KEYS[3])
end
local kind, pause = 0, 0
if month > 0 and inmonth >= month then kind = 5
elseif day > 0 and inday >= day then kind = 4
elseif most > 0 and running >= most then kind = 3 end
if kind == 0 and tokens > 0 then
  pause = wait(KEYS[2], tokens, 1)
  if pause > 0 then kind = 2 end
end
if kind == 0 and requests > 0 then
  pause = wait(KEYS[1], requests, 1)
  if pause > 0 then kind = 1 end
end
if kind == 0 then
  if requests > 0 then add(KEYS[1], requests, 1) end
  if most > 0 then
    redis.call('ZADD', KEYS[3], string.format('%.0f', now + ARGV[7]), ARGV[6])
    redis.call('PEXPIRE', KEYS[3], string.format('%.0f', ARGV[7] / 1000))
    running = running + 1
  end
end
return {kind, math.ceil(pause), requests > 0 and left(KEYS[1], requests) or 0, tokens > 0 and left(KEYS[2], tokens) or 0, running, inday, inmonth}
`

// KEYS: tokens, day, month, held. ARGV: tokens a minute, how many, day, month, what it
// may cost, its place, lease, what is known to be spent of the day and of the month.
//
//nolint:dupword // Lua
const takeScript = `
local tokens, n, day, month, micro = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local kind, pause = 0, 0
if micro > 0 then
  local held = 0
  redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', string.format('%.0f', now))
  for _, place in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do held = held + tonumber(string.match(place, '%d+$')) end
  local inday, inmonth = math.max(number(KEYS[2]), tonumber(ARGV[8])), math.max(number(KEYS[3]), tonumber(ARGV[9]))
  if month > 0 and inmonth >= month then kind = 5
  elseif day > 0 and inday >= day then kind = 4
  elseif month > 0 and inmonth + held >= month or day > 0 and inday + held >= day then kind = 6 end
end
if kind == 0 and n > 0 then
  pause = wait(KEYS[1], tokens, n)
  if pause > 0 then kind = 2 end
end
if kind == 0 then
  if n > 0 then add(KEYS[1], tokens, n) end
  if micro > 0 then
    redis.call('ZADD', KEYS[4], string.format('%.0f', now + ARGV[7]), ARGV[6])
    redis.call('PEXPIRE', KEYS[4], string.format('%.0f', ARGV[7] / 1000))
  end
end
return {kind, math.ceil(pause), tokens > 0 and left(KEYS[1], tokens) or 0}
`

// KEYS: tokens, running, day, month, held. ARGV: tokens a minute, how many more, ticket,
// cost, for how long the day's and the month's are kept, whether each is counted,
// what is known to be spent of each, its place among what is held.
const settleScript = `
if tonumber(ARGV[1]) > 0 and tonumber(ARGV[2]) ~= 0 then add(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])) end
redis.call('ZREM', KEYS[2], ARGV[3])
redis.call('ZREM', KEYS[5], ARGV[11])
local function spend(key, kept, counted, known)
  if counted == '0' then return 0 end
  local value = math.max(number(key), tonumber(known)) + tonumber(ARGV[4])
  keep(key, value, kept)
  return value
end
return {spend(KEYS[3], ARGV[5], ARGV[7], ARGV[9]), spend(KEYS[4], ARGV[6], ARGV[8], ARGV[10])}
`

// admit lets a request begin or says which limit it meets. known is what this
// replica knows to be spent: Redis may know less, after a restart.
func (s *shared) admit(ctx context.Context, ticket *Ticket, known spend) (verdict, error) {
	quota, names := ticket.quota, namesOf(ticket.subject, ticket.at)
	answer, err := numbers(s.admission.Run(ctx, s.client,
		[]string{names.requests, names.tokens, names.running, names.day, names.month},
		quota.RequestsPerMinute, quota.TokensPerMinute, quota.Concurrency, quota.DayMicroUSD, quota.MonthMicroUSD,
		ticket.id.String(), lease.Microseconds(), known.dayMicro, dayKept.Milliseconds(), known.monthMicro, monthKept.Milliseconds()), 7)
	if err != nil {
		return verdict{}, err
	}
	known.dayMicro, known.monthMicro = max(known.dayMicro, answer[5]), max(known.monthMicro, answer[6])
	result := verdict{kind: Kind(answer[0]), wait: time.Duration(answer[1]) * time.Microsecond, spend: known, left: Remaining{
		Requests: int(answer[2]), Tokens: int(answer[3]), Concurrency: max(0, quota.Concurrency-int(answer[4])),
		DayMicroUSD: max(0, quota.DayMicroUSD-answer[5]), MonthMicroUSD: max(0, quota.MonthMicroUSD-answer[6]),
	}}
	return result.until(ticket.at)
}

// until completes a verdict of Redis with how long a budget is used up.
func (v verdict) until(now time.Time) (verdict, error) {
	switch v.kind {
	case None, Requests, Tokens, Concurrency, HeldBudget:
	case DayBudget:
		v.wait = untilDay(now)
	case MonthBudget:
		v.wait = untilMonth(now)
	default:
		return verdict{}, fmt.Errorf("limits: Redis answers %d", v.kind)
	}
	return v, nil
}

// take counts n tokens and holds so much of the budgets, if both fit, or else says
// which limit is met. known is what this replica knows to be spent.
func (s *shared) take(ctx context.Context, ticket *Ticket, n int, micro int64, known spend) (verdict, error) {
	names, quota := namesOf(ticket.subject, ticket.at), ticket.quota
	known = spend{}.at(ticket.at).atLeast(known)
	answer, err := numbers(s.claiming.Run(ctx, s.client, []string{names.tokens, names.day, names.month, names.held},
		quota.TokensPerMinute, n, quota.DayMicroUSD, quota.MonthMicroUSD, micro,
		place{ticket: ticket.id.String(), micro: micro}.member(), lease.Microseconds(), known.dayMicro, known.monthMicro), 3)
	if err != nil {
		return verdict{}, err
	}
	result := verdict{kind: Kind(answer[0]), wait: time.Duration(answer[1]) * time.Microsecond, left: Remaining{Tokens: int(answer[2])}}
	return result.until(ticket.at)
}

// settle ends a request and returns what is spent with it. before is what this
// replica knows to be spent without it.
func (s *shared) settle(ctx context.Context, ticket *Ticket, n int, micro int64, before spend) (spend, error) {
	names, quota := namesOf(ticket.subject, ticket.at), ticket.quota
	known := spend{}.at(ticket.at).atLeast(before)
	answer, err := numbers(s.settling.Run(ctx, s.client, []string{names.tokens, names.running, names.day, names.month, names.held},
		quota.TokensPerMinute, n, ticket.id.String(), micro, dayKept.Milliseconds(), monthKept.Milliseconds(),
		flag(quota.DayMicroUSD > 0), flag(quota.MonthMicroUSD > 0), known.dayMicro, known.monthMicro,
		place{ticket: ticket.id.String(), micro: ticket.held}.member()), 2)
	if err != nil {
		return spend{}, err
	}
	known.dayMicro, known.monthMicro = answer[0], answer[1]
	return known, nil
}

// place is what a request under way has in Redis.
type place struct {
	names  names
	ticket string
	micro  int64 // what it holds of its budgets
}

// member returns the place as it stands among what is held. It ends with how much.
func (p place) member() string { return p.ticket + ":" + strconv.FormatInt(p.micro, 10) }

// renew says that requests are still under way.
func (s *shared) renew(ctx context.Context, places []place) error {
	if len(places) == 0 {
		return nil
	}
	clock, err := s.client.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("renew leases: %w", err)
	}
	end := float64(clock.Add(lease).UnixMicro())
	_, err = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, place := range places {
			pipe.ZAddXX(ctx, place.names.running, redis.Z{Score: end, Member: place.ticket})
			pipe.PExpire(ctx, place.names.running, lease)
			if place.micro > 0 {
				pipe.ZAddXX(ctx, place.names.held, redis.Z{Score: end, Member: place.member()})
				pipe.PExpire(ctx, place.names.held, lease)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("renew leases: %w", err)
	}
	return nil
}

// names are where a subject's counters lie. The workspace stands first, and in
// braces, so that a cluster keeps all of it in one place.
type names struct{ requests, tokens, running, held, day, month string }

func namesOf(subject Subject, at time.Time) names {
	who := "workspace"
	if subject.Key != uuid.Nil {
		who = subject.Key.String()
	}
	prefix := "palimpsest:limits:{" + subject.Workspace.String() + "}:" + who + ":"
	day, month := tenants.SpendSpan(at)
	return names{
		requests: prefix + "requests", tokens: prefix + "tokens", running: prefix + "running", held: prefix + "held",
		day: prefix + "day:" + day.Format("2006-01-02"), month: prefix + "month:" + month.Format("2006-01"),
	}
}

// numbers reads a script's answer of so many whole numbers.
func numbers(answer *redis.Cmd, count int) ([]int64, error) {
	read, err := answer.Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("limits in Redis: %w", err)
	}
	if len(read) != count {
		return nil, fmt.Errorf("limits in Redis: %d numbers instead of %d", len(read), count)
	}
	return read, nil
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}
