package tenants

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Spender is a part of a workspace whose spend is counted.
type Spender struct {
	Kind SpenderKind
	ID   string // of an API key or a person; a project's name; an end user's hash; "" for the workspace
}

// SpenderKind is a kind of Spender.
type SpenderKind string

// The kinds of spenders. A person spends through the keys that they are responsible for, a project through
// requests with its name in the tag project, an end user through requests that name them.
const (
	KeySpends       SpenderKind = "key"
	MemberSpends    SpenderKind = "member"
	ProjectSpends   SpenderKind = "project"
	WorkspaceSpends SpenderKind = "workspace"
	EndUserSpends   SpenderKind = "end_user"
)

// ProjectTag is the name of the tag with a request's project: for budgets, and for the scope "project" of
// memory.
const ProjectTag = "project"

// MaxBudgets bounds the budgets of a workspace, except those of its keys.
const MaxBudgets = 200

// Budget bounds the spend of a spender other than an API key; 0 means no limit. For EndUserSpends it has no
// ID, because it applies to each end user of the workspace.
type Budget struct {
	Spender

	Quota
}

// Validate returns an Invalid that names the wrong field and its allowed values.
func (b Budget) Validate() error {
	switch b.Kind {
	case MemberSpends:
		if _, err := uuid.Parse(b.ID); err != nil {
			return Invalid{Field: "id", Message: "must be the id of a member"}
		}
	case ProjectSpends:
		if err := CheckTag("id", ProjectTag, b.ID); err != nil {
			return err
		}
	case WorkspaceSpends:
		if b.ID != "" {
			return Invalid{Field: "id", Message: "must be left out: the workspace has one budget"}
		}
	case EndUserSpends:
		if b.ID != "" {
			return Invalid{Field: "id", Message: "must be left out: the budget is that of each end user"}
		}
	default:
		return Invalid{Field: "kind", Message: fmt.Sprintf("is %q, which is not one of workspace, member, project, end_user", string(b.Kind))}
	}
	for _, limit := range QuotaLimits() {
		if limit.Of(b.Quota) == 0 || limit.IsMoney || limit.OfEndUser && b.Kind == EndUserSpends {
			continue
		}
		if limit.OfEndUser {
			return Invalid{Field: limit.Name, Message: "must be left out: only end users have it here"}
		}
		return Invalid{Field: limit.Name, Message: "must be left out: only API keys have it"}
	}
	return b.Quota.validate()
}

// CheckBudgets returns budgets in order (see SortBudgets), without budgets that have no limit. The error is
// an Invalid that names the position of the wrong one.
func CheckBudgets(budgets []Budget) ([]Budget, error) {
	if len(budgets) > MaxBudgets {
		return nil, Invalid{Field: "budgets", Message: fmt.Sprintf("must have at most %d entries", MaxBudgets)}
	}
	seen := make(map[Spender]bool, len(budgets))
	var checked []Budget
	for i, budget := range budgets {
		err := budget.Validate()
		if err == nil && seen[budget.Spender] {
			err = Invalid{Field: "id", Message: "has a budget in the list already"}
		}
		if invalid, is := errors.AsType[Invalid](err); is {
			return nil, Invalid{Field: fmt.Sprintf("budgets[%d].%s", i, invalid.Field), Message: invalid.Message}
		}
		seen[budget.Spender] = true
		if !budget.IsUnlimited() {
			checked = append(checked, budget)
		}
	}
	SortBudgets(checked)
	return checked, nil
}

// forecastAfter is the part of a period that must be over before a forecast.
const forecastAfter = 0.25

// Forecast extrapolates usage to the end of a period, at the rate so far. It makes no forecast before a
// quarter of the period is over.
func Forecast(used int64, from, to, now time.Time) (int64, bool) {
	whole, gone := to.Sub(from), now.Sub(from)
	if whole <= 0 || gone > whole || float64(gone) < forecastAfter*float64(whole) {
		return 0, false
	}
	return int64(float64(used) * float64(whole) / float64(gone)), true
}

// SortBudgets sorts budgets in display order: the workspace, projects, members, API keys, end users; then by
// id.
func SortBudgets(budgets []Budget) {
	kinds := []SpenderKind{WorkspaceSpends, ProjectSpends, MemberSpends, KeySpends, EndUserSpends}
	slices.SortFunc(budgets, func(a, b Budget) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.ID, b.ID))
	})
}

// BudgetFields returns the budgets' fields for the audit log.
func BudgetFields(budgets []Budget) Fields {
	fields := Fields{}
	for _, budget := range budgets {
		name := string(budget.Kind)
		if budget.ID != "" {
			name += " " + budget.ID
		}
		budget.fields(fields, name+" ")
	}
	return fields
}

// The bounds of pattern lists.
const (
	maxPatterns = 50
	maxPattern  = 200 // characters of a pattern
)

// Limits are the limits of an API key. The zero value has no limits.
type Limits struct {
	Models        []string       // patterns of models' names, "claude-*"; empty: all models
	Endpoints     []string       // patterns of paths, "/v1/messages*"; empty: all paths
	Addresses     []netip.Prefix // networks of clients; empty: all addresses
	Origins       Origins        // of pages that may read answers in a browser; empty: the workspace's
	LockOverrides bool           // requests must not override pipeline or provider by their headers
	NoStore       bool           // stores figures only of its exchanges, and therefore compresses none

	// PrivateBaseURL allows requests to name base URLs on private addresses by their headers, if the
	// installation allows those. nil allows it if the person behind the key may manage providers.
	PrivateBaseURL *bool

	Quota

	// Shared means that the requests also count against another budget.
	Shared bool
}

// Forbidden is a request that an API key's limits do not allow, so that waiting does not help.
type Forbidden struct {
	Code    string // for programs: "model_not_allowed", …
	Message string // the allowed values and the next step
}

// Error implements error.
func (e Forbidden) Error() string { return e.Code + ": " + e.Message }

// Validate returns a tenants.Invalid that names the wrong field and its allowed values.
func (l Limits) Validate() error {
	if err := checkPatterns("allowed_models", l.Models, func(pattern string) bool { return pattern != "" }, "a model's name such as claude-opus-4-5 or claude-*"); err != nil {
		return err
	}
	isPath := func(pattern string) bool { return strings.HasPrefix(pattern, "/") }
	if err := checkPatterns("allowed_endpoints", l.Endpoints, isPath, "a path such as /v1/messages or /v1/messages*"); err != nil {
		return err
	}
	if len(l.Addresses) > maxPatterns {
		return Invalid{Field: "allowed_ips", Message: fmt.Sprintf("must have at most %d entries", maxPatterns)}
	}
	if err := l.Origins.validate(); err != nil {
		return err
	}
	return l.validate()
}

func checkPatterns(field string, patterns []string, good func(string) bool, example string) error {
	if len(patterns) > maxPatterns {
		return Invalid{Field: field, Message: fmt.Sprintf("must have at most %d entries", maxPatterns)}
	}
	for _, pattern := range patterns {
		if !good(pattern) || len(pattern) > maxPattern || strings.ContainsFunc(pattern, notInPattern) {
			return Invalid{Field: field, Message: fmt.Sprintf("has %s, which is not %s", strconv.Quote(pattern), example)}
		}
	}
	return nil
}

// notInPattern reports whether a character is not allowed in names and paths.
func notInPattern(r rune) bool { return r <= ' ' || r > '~' }

// ParseAddresses parses addresses and networks such as 203.0.113.7 and 2001:db8::/32. The error is an
// Invalid.
func ParseAddresses(list []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		if address, isAddress := netip.ParseAddr(text); isAddress == nil {
			address = address.Unmap().WithZone("")
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil || network.Addr().Is4In6() {
			return nil, Invalid{Field: "allowed_ips", Message: fmt.Sprintf("has %s, which is not an address such as 203.0.113.7 or a network such as 10.0.0.0/8", strconv.Quote(text))}
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// CheckAddress returns a Forbidden if a client's address is not allowed.
func (l Limits) CheckAddress(client string) error {
	if len(l.Addresses) == 0 {
		return nil
	}
	address, err := netip.ParseAddr(client)
	if err == nil {
		address = address.Unmap().WithZone("")
		for _, network := range l.Addresses {
			if network.Contains(address) {
				return nil
			}
		}
	}
	// The message does not name the networks, because the client may have stolen the key.
	return Forbidden{Code: "address_not_allowed", Message: fmt.Sprintf(
		"This Palimpsest API key may not be used from the address %s. Use it from one of its own networks, or have this one added on the dashboard's API keys page.", client)}
}

// CheckEndpoint returns a Forbidden if a path is not allowed.
func (l Limits) CheckEndpoint(asked string) error {
	if len(l.Endpoints) == 0 {
		return nil
	}
	// A path with ".." may mean another path to the provider.
	if path.Clean(asked) == strings.TrimSuffix(asked, "/") {
		for _, pattern := range l.Endpoints {
			if matches(pattern, asked) {
				return nil
			}
		}
	}
	return Forbidden{Code: "endpoint_not_allowed", Message: fmt.Sprintf(
		"This Palimpsest API key may use %s only. Send the request there, or have the endpoint added on the dashboard's API keys page.", strings.Join(l.Endpoints, ", "))}
}

// CheckModel returns a Forbidden if a model is not allowed, or has no price although there is a budget.
func (l Limits) CheckModel(model string, priced bool) error {
	if !l.allowsModel(model) {
		return Forbidden{Code: "model_not_allowed", Message: fmt.Sprintf(
			"This Palimpsest API key may use the models %s only, not %s. Choose one of them, or have the model added on the dashboard's API keys page.",
			strings.Join(l.Models, ", "), strconv.Quote(model))}
	}
	if l.counts() && !priced {
		return Forbidden{Code: "model_without_price", Message: fmt.Sprintf(
			"Requests of this Palimpsest API key count against a budget, and the price of %s is not known. Choose another model, or have the key allow models without a price on the dashboard's API keys page: they then count as free. An operator of this installation can give it a price in the catalog of models (PALIMPSEST_CATALOG).",
			strconv.Quote(model))}
	}
	return nil
}

// CheckRelay returns a Forbidden for a request to a path whose model and cost are unknown, if either is
// limited. Free requests do not generate model output.
func (l Limits) CheckRelay(asked string, free bool) error {
	switch {
	case len(l.Models) > 0:
		return Forbidden{Code: "endpoint_not_allowed", Message: fmt.Sprintf(
			"This Palimpsest API key may use the models %s only, and requests to %s are relayed unread. Use /v1/messages, /v1/chat/completions or /v1/responses, or a key without a limit on models.",
			strings.Join(l.Models, ", "), asked)}
	case l.counts() && !free:
		return Forbidden{Code: "endpoint_without_price", Message: fmt.Sprintf(
			"Requests of this Palimpsest API key count against a budget, and what requests to %s cost is not known. Have the key allow what has no price on the dashboard's API keys page, or use a key without a budget.", asked)}
	}
	return nil
}

// CheckOverrides returns a Forbidden with the names of a request's override headers, if overrides are locked.
func (l Limits) CheckOverrides(headers []string) error {
	if !l.LockOverrides || len(headers) == 0 {
		return nil
	}
	return Forbidden{Code: "override_not_allowed", Message: fmt.Sprintf(
		"This Palimpsest API key does not allow overrides. Leave out %s, or have the lock opened on the dashboard's API keys page.", strings.Join(headers, ", "))}
}

// NamesPrivate reports whether requests with a key may name base URLs on private addresses while the person
// behind it has a role.
func (l Limits) NamesPrivate(role Role) bool {
	if l.PrivateBaseURL != nil {
		return *l.PrivateBaseURL
	}
	return role.May(ManageProviders)
}

// counts reports whether there is a budget and models without a price are refused.
func (l Limits) counts() bool { return (l.HasBudget() || l.Shared) && !l.AllowUnpriced }

func (l Limits) allowsModel(model string) bool {
	for _, pattern := range l.Models {
		if matches(strings.ToLower(pattern), strings.ToLower(model)) {
			return true
		}
	}
	return len(l.Models) == 0
}

// matches reports whether a text matches a pattern, in which * matches any characters.
func matches(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, found := strings.CutPrefix(text, first)
	for found {
		var part string
		part, rest, wild = strings.Cut(rest, "*")
		if !wild {
			return strings.HasSuffix(text, part)
		}
		_, text, found = strings.Cut(text, part)
	}
	return false
}

// fields adds the limits' fields for the audit log.
func (l Limits) fields(to Fields) {
	list := func(name string, values []string) {
		if len(values) > 0 {
			to[name] = strings.Join(values, ",")
		}
	}
	is := func(name string, set bool) {
		if set {
			to[name] = "yes"
		}
	}
	list("allowed_models", l.Models)
	list("allowed_endpoints", l.Endpoints)
	list("allowed_ips", l.AddressList())
	list("browser_origins", l.Origins)
	is("lock_overrides", l.LockOverrides)
	is("no_store", l.NoStore)
	if l.PrivateBaseURL != nil {
		to["private_base_url"] = map[bool]string{true: "yes", false: "no"}[*l.PrivateBaseURL]
	}
	l.Quota.fields(to, "")
	is("allow_unpriced", l.AllowUnpriced)
}

// AddressList returns the networks in the form of ParseAddresses: single addresses without their length.
func (l Limits) AddressList() []string {
	list := make([]string, len(l.Addresses))
	for i, network := range l.Addresses {
		list[i] = network.String()
		if network.IsSingleIP() {
			list[i] = network.Addr().String()
		}
	}
	return list
}

// MicroUSD converts dollars to millionths. The error is an Invalid for field: an amount below a millionth is
// rejected because 0 would mean no budget. Values out of range are left to Validate.
func MicroUSD(field string, dollars float64) (int64, error) {
	if math.IsNaN(dollars) || dollars != 0 && math.Abs(dollars) < 1e-6 {
		return 0, Invalid{Field: field, Message: fmt.Sprintf("must be an amount from 0.000001 to %d, or 0 for no budget", maxMicroUSD/1_000_000)}
	}
	return int64(math.Round(min(max(dollars, -1), 1e12) * 1e6)), nil
}

// USD formats millionths of a dollar with as many decimals as needed, at least two.
func USD(micro int64) string {
	text := strconv.FormatFloat(float64(micro)/1e6, 'f', 6, 64)
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 3 {
		text = text[:len(text)-1]
	}
	return text
}

// SpendSpan returns the start of a time's day and month in UTC, the periods of budgets.
func SpendSpan(at time.Time) (day, month time.Time) {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC), time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}
