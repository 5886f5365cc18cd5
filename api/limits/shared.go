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

// lease is how long a request counts as under way in Redis unless its replica renews it, so that the requests
// of a killed replica free their places.
const lease = 90 * time.Second

// How long spend is kept in Redis: longer than its day and month.
const (
	dayKept   = 48 * time.Hour
	monthKept = 33 * 24 * time.Hour
)

// shared counts in Redis, for all replicas together. Each call is one script, and therefore atomic. Time is
// that of Redis.
type shared struct {
	client              redis.UniversalClient
	admission, claiming *redis.Script
	settling, renewal   *redis.Script
}

func newShared(client redis.UniversalClient) *shared {
	return &shared{
		client: client, admission: redis.NewScript(clockScript + admitScript),
		claiming: redis.NewScript(clockScript + takeScript), settling: redis.NewScript(clockScript + settleScript),
		renewal: redis.NewScript(renewScript),
	}
}

// Each script gets the keys of each subject, in the order of names. Its arguments are eight common ones, then
// for each subject: a minute's requests and tokens, concurrency, day, month, and the known spend of the day
// and of the month. Numbers are written in full because Lua would round large ones. Times are microseconds.
//
// The place of a request in the held set ends with its amount. Its score is the time until which its replica
// says that the request is under way. A place that isn't renewed in time is charged, because the provider may
// have worked on the request. It stays for a day with the negative time of the charge, for the case that its
// replica was only slow.
const clockScript = `
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local minute = 60000000
local function whole(n) return string.format('%.0f', n) end
local function number(key) return tonumber(redis.call('GET', key) or '0') end
local function keep(key, value, milliseconds) redis.call('SET', key, whole(value), 'PX', whole(milliseconds)) end
local function wait(key, limit, n) return math.max(0, math.max(number(key), now) + n * minute / limit - now - minute) end
local function add(key, limit, n)
  local later = math.max(number(key), now) + n * minute / limit
  if later > now then keep(key, later, (later - now) / 1000 + 1) else redis.call('DEL', key) end
end
local function left(key, limit)
  if limit == 0 then return 0 end
  return math.min(limit, math.max(0, math.floor((now + minute - math.max(number(key), now)) * limit / minute)))
end
local ticket, lease, daykept, monthkept = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local prompt, answers, place, cost = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8])
local function amount(of) return tonumber(string.match(of, '%d+$')) end
local function under(s)
  local sum = 0
  for _, one in ipairs(redis.call('ZRANGEBYSCORE', s.held, whole(now), '+inf')) do sum = sum + amount(one) end
  return sum
end
local function lapse(s)
  local gone = 0
  for _, one in ipairs(redis.call('ZRANGEBYSCORE', s.held, '(0', '(' .. whole(now))) do
    gone = gone + amount(one)
    redis.call('ZADD', s.held, whole(-now), one)
  end
  redis.call('ZREMRANGEBYSCORE', s.held, whole(86400000000 - now), '0')
  return gone
end
local function spent(key, limit, known, gone, kept)
  if limit == 0 then return 0 end
  local before = number(key)
  local value = math.max(before, known) + gone
  if value > before then keep(key, value, kept) end
  return value
end
local subjects = {}
for i = 1, #KEYS / 6 do
  local k, a = 6 * (i - 1), 8 + 7 * (i - 1)
  local s = {requests = KEYS[k+1], tokens = KEYS[k+2], running = KEYS[k+3], held = KEYS[k+4], dayat = KEYS[k+5], monthat = KEYS[k+6],
    rpm = tonumber(ARGV[a+1]), tpm = tonumber(ARGV[a+2]), most = tonumber(ARGV[a+3]), day = tonumber(ARGV[a+4]), month = tonumber(ARGV[a+5])}
  local gone = 0
  if s.day > 0 or s.month > 0 then gone = lapse(s) end
  s.inday = spent(s.dayat, s.day, tonumber(ARGV[a+6]), gone, daykept)
  s.inmonth = spent(s.monthat, s.month, tonumber(ARGV[a+7]), gone, monthkept)
  subjects[i] = s
end
local function meets(s)
  if s.month > 0 and s.inmonth >= s.month then return 5 end
  if s.day > 0 and s.inday >= s.day then return 4 end
  return 0
end
`

const admitScript = `
local kind, which, pause = 0, 0, 0
for i, s in ipairs(subjects) do
  s.now = 0
  if s.most > 0 then
    redis.call('ZREMRANGEBYSCORE', s.running, '-inf', whole(now))
    s.now = redis.call('ZCARD', s.running)
  end
  if kind == 0 then
    which, kind = i, meets(s)
    if kind == 0 and s.most > 0 and s.now >= s.most then kind = 3 end
    if kind == 0 and s.tpm > 0 then
      pause = wait(s.tokens, s.tpm, 1)
      if pause > 0 then kind = 2 end
    end
    if kind == 0 and s.rpm > 0 then
      pause = wait(s.requests, s.rpm, 1)
      if pause > 0 then kind = 1 end
    end
  end
end
local answer = {kind, which, math.ceil(pause)}
for _, s in ipairs(subjects) do
  if kind == 0 and s.rpm > 0 then add(s.requests, s.rpm, 1) end
  if kind == 0 and s.most > 0 then
    redis.call('ZADD', s.running, whole(now + lease), ticket)
    redis.call('PEXPIRE', s.running, whole(lease / 1000))
    s.now = s.now + 1
  end
  for _, n in ipairs({left(s.requests, s.rpm), left(s.tokens, s.tpm), s.now, s.inday, s.inmonth}) do answer[#answer+1] = n end
end
return answer
`

const takeScript = `
local kind, which, pause = 0, 0, 0
local holds = amount(place) > 0
for i, s in ipairs(subjects) do
  if kind == 0 then
    which = i
    if holds and (s.day > 0 or s.month > 0) then
      kind = meets(s)
      local held = under(s)
      if kind == 0 and (s.month > 0 and s.inmonth + held >= s.month or s.day > 0 and s.inday + held >= s.day) then kind = 6 end
    end
    if kind == 0 and s.tpm > 0 and prompt > 0 then
      pause = wait(s.tokens, s.tpm, prompt)
      if pause > 0 then kind = 2 end
    end
  end
end
local answer = {kind, which, math.ceil(pause)}
for _, s in ipairs(subjects) do
  if kind == 0 and s.tpm > 0 then add(s.tokens, s.tpm, prompt + answers) end
  if kind == 0 and holds and (s.day > 0 or s.month > 0) then
    redis.call('ZADD', s.held, whole(now + lease), place)
    redis.call('PEXPIRE', s.held, monthkept)
  end
  answer[#answer+1] = left(s.tokens, s.tpm)
end
return answer
`

// prompt is how many tokens more than were taken.
const settleScript = `
local answer = {}
for i, s in ipairs(subjects) do
  if s.tpm > 0 and prompt ~= 0 then add(s.tokens, s.tpm, prompt) end
  redis.call('ZREM', s.running, ticket)
  local more = cost
  if tonumber(redis.call('ZSCORE', s.held, place) or '0') < 0 then more = cost - amount(place) end
  redis.call('ZREM', s.held, place)
  for _, sum in ipairs({{s.dayat, s.day, s.inday, daykept}, {s.monthat, s.month, s.inmonth, monthkept}}) do
    local value = 0
    if sum[2] > 0 then
      value = math.max(0, sum[3] + more)
      keep(sum[1], value, sum[4])
    end
    answer[#answer+1] = value
  end
end
return answer
`

// A request that has been charged in the meantime stays charged until it is settled.
const renewScript = `
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0') > 0 then redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1]) end
`

// run runs a script for the subjects of a ticket. known is the spend of each of them as known to this
// replica, since Redis may know less after a restart.
func (s *shared) run(ctx context.Context, script *redis.Script, ticket *Ticket, known []spend, prompt, answers int, place string, cost int64, count int) ([]int64, error) {
	keys := make([]string, 0, 6*len(ticket.held))
	arguments := append(make([]any, 0, 8+7*len(ticket.held)),
		ticket.id.String(), lease.Microseconds(), dayKept.Milliseconds(), monthKept.Milliseconds(), prompt, answers, place, cost)
	for i, held := range ticket.held {
		names, quota, spent := namesOf(held.Subject, ticket.at), held.Quota, spend{}.at(ticket.at).atLeast(known[i])
		keys = append(keys, names.requests, names.tokens, names.running, names.held, names.day, names.month)
		arguments = append(arguments, quota.RequestsPerMinute, quota.TokensPerMinute, quota.Concurrency, quota.DayMicroUSD, quota.MonthMicroUSD, spent.dayMicro, spent.monthMicro)
	}
	return numbers(script.Run(ctx, s.client, keys, arguments...), count)
}

// admit admits a request or returns the exceeded limit.
func (s *shared) admit(ctx context.Context, ticket *Ticket, known []spend) (verdict, error) {
	answer, err := s.run(ctx, s.admission, ticket, known, 0, 0, ticket.place(), 0, 3+5*len(ticket.held))
	if err != nil {
		return verdict{}, err
	}
	result := verdict{kind: Kind(answer[0]), of: int(answer[1] - 1), wait: time.Duration(answer[2]) * time.Microsecond}
	for i, held := range ticket.held {
		own, quota := answer[3+5*i:], held.Quota
		spent := spend{}.at(ticket.at).atLeast(known[i])
		spent.dayMicro, spent.monthMicro = max(spent.dayMicro, own[3]), max(spent.monthMicro, own[4])
		result.spend = append(result.spend, spent)
		result.left = append(result.left, Remaining{
			RequestsPerMinute: int(own[0]), TokensPerMinute: int(own[1]), Concurrency: max(0, quota.Concurrency-int(own[2])),
			DayMicroUSD: max(0, quota.DayMicroUSD-own[3]), MonthMicroUSD: max(0, quota.MonthMicroUSD-own[4]),
		})
	}
	return result.until(ticket.at)
}

// until adds to a verdict of Redis how long a budget is used up.
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

// take counts tokens and holds a part of the budgets if all of it fits, otherwise it returns the exceeded
// limit.
func (s *shared) take(ctx context.Context, ticket *Ticket, asked claim, known []spend) (verdict, error) {
	place := placeOf(ticket.id, asked.micro)
	answer, err := s.run(ctx, s.claiming, ticket, known, asked.prompt, asked.answers, place, 0, 3+len(ticket.held))
	if err != nil {
		return verdict{}, err
	}
	result := verdict{kind: Kind(answer[0]), of: int(answer[1] - 1), wait: time.Duration(answer[2]) * time.Microsecond}
	for _, tokens := range answer[3:] {
		result.left = append(result.left, Remaining{TokensPerMinute: int(tokens)})
	}
	return result.until(ticket.at)
}

// settle ends a request and returns the spend of each of its subjects including it. before is the spend
// without it, as known to this replica.
func (s *shared) settle(ctx context.Context, ticket *Ticket, n int, micro int64, before []spend) ([]spend, error) {
	answer, err := s.run(ctx, s.settling, ticket, before, n, 0, ticket.place(), micro, 2*len(ticket.held))
	if err != nil {
		return nil, err
	}
	known := make([]spend, len(ticket.held))
	for i := range known {
		known[i] = spend{}.at(ticket.at)
		known[i].dayMicro, known[i].monthMicro = answer[2*i], answer[2*i+1]
	}
	return known, nil
}

// release removes places. Each follows its key in the list.
func (s *shared) release(ctx context.Context, places []string) error {
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := 0; i+1 < len(places); i += 2 {
			pipe.ZRem(ctx, places[i], places[i+1])
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("release what is held: %w", err)
	}
	return nil
}

// place is a request's place in Redis under one subject.
type place struct {
	names  names
	ticket string
	held   string // see placeOf
	isHeld bool
}

// place returns the request's member of the held set.
func (t *Ticket) place() string {
	if !t.shared {
		return placeOf(t.id, 0)
	}
	return placeOf(t.id, t.claim.micro)
}

// placeOf returns a request's member of the held set. It ends with the held amount.
func placeOf(ticket uuid.UUID, micro int64) string {
	return ticket.String() + ":" + strconv.FormatInt(micro, 10)
}

// renew extends the leases of requests under way.
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
			if place.isHeld {
				s.renewal.Eval(ctx, pipe, []string{place.names.held}, place.held, strconv.FormatFloat(end, 'f', 0, 64))
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("renew leases: %w", err)
	}
	return nil
}

// names are the keys of a subject's counters. They begin with the workspace, in braces, so that a cluster
// keeps all of them on one node.
type names struct{ requests, tokens, running, held, day, month string }

func namesOf(subject Subject, at time.Time) names {
	who := subject.ID
	if subject.Kind != tenants.KeySpends {
		who = string(subject.Kind) + ":" + subject.ID
	}
	prefix := "palimpsest:limits:{" + subject.Workspace.String() + "}:" + who + ":"
	day, month := tenants.SpendSpan(at)
	return names{
		requests: prefix + "requests", tokens: prefix + "tokens", running: prefix + "running", held: prefix + "held",
		day: prefix + "day:" + day.Format("2006-01-02"), month: prefix + "month:" + month.Format("2006-01"),
	}
}

// numbers reads a script's answer of count integers.
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
