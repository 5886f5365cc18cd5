package tenants

import (
	"fmt"
	"math"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"
)

// The most patterns that a limit can have.
const (
	maxPatterns = 50
	maxPattern  = 200 // characters of a pattern
)

// Limits are what an API key is held to. The zero Limits hold it to nothing.
type Limits struct {
	Models        []string       // patterns of models' names, "claude-*"; none: every model
	Endpoints     []string       // patterns of paths, "/v1/messages*"; none: every path
	Addresses     []netip.Prefix // networks of clients; none: every address
	Origins       Origins        // of pages that may read answers in a browser; none: the workspace's
	LockOverrides bool           // a request may not override pipeline or provider by its headers
	NoStore       bool           // nothing of its exchanges is kept but figures, and so nothing is compressed

	// PrivateBaseURL says whether a request may name a base URL on a private address by its
	// headers, where the installation allows those. nil: if the person behind the key may
	// manage providers.
	PrivateBaseURL *bool

	Quota

	// Shared says that the requests count against another budget, too.
	Shared bool
}

// Forbidden is a request that an API key's limits do not allow, however long one
// waits.
type Forbidden struct {
	Code    string // for programs: "model_not_allowed", …
	Message string // says what is allowed and what to do
}

// Error implements error.
func (e Forbidden) Error() string { return e.Code + ": " + e.Message }

// Validate returns a tenants.Invalid that names the field at fault and what it may
// be.
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

// notInPattern reports whether a character stands in no name and no path.
func notInPattern(r rune) bool { return r <= ' ' || r > '~' }

// ParseAddresses reads addresses and networks such as 203.0.113.7 and
// 2001:db8::/32. The error is an Invalid.
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

// CheckAddress returns a Forbidden for a client's address that is not allowed.
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
	// The networks are not named: anyone who asks may have stolen the key.
	return Forbidden{Code: "address_not_allowed", Message: fmt.Sprintf(
		"This Palimpsest API key may not be used from the address %s. Use it from one of its own networks, or have this one added on the dashboard's API keys page.", client)}
}

// CheckEndpoint returns a Forbidden for a path that is not allowed.
func (l Limits) CheckEndpoint(asked string) error {
	if len(l.Endpoints) == 0 {
		return nil
	}
	// A path with a way back in it may mean another one to the provider.
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

// CheckModel returns a Forbidden for a model that is not allowed, or that has no
// price although there is a budget.
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

// CheckRelay returns a Forbidden for a request to a path whose model and cost nobody sees,
// where either is limited. A request that is free has no model make anything.
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

// CheckOverrides returns a Forbidden that names the headers by which a request
// overrides something, where that is locked.
func (l Limits) CheckOverrides(headers []string) error {
	if !l.LockOverrides || len(headers) == 0 {
		return nil
	}
	return Forbidden{Code: "override_not_allowed", Message: fmt.Sprintf(
		"This Palimpsest API key does not allow overrides. Leave out %s, or have the lock opened on the dashboard's API keys page.", strings.Join(headers, ", "))}
}

// NamesPrivate reports whether requests with a key may name base URLs on private addresses
// while the person behind it has a role.
func (l Limits) NamesPrivate(role Role) bool {
	if l.PrivateBaseURL != nil {
		return *l.PrivateBaseURL
	}
	return role.May(ManageProviders)
}

// counts reports whether money is limited, and what has no price is not let pass.
func (l Limits) counts() bool { return (l.HasBudget() || l.Shared) && !l.AllowUnpriced }

func (l Limits) allowsModel(model string) bool {
	for _, pattern := range l.Models {
		if matches(strings.ToLower(pattern), strings.ToLower(model)) {
			return true
		}
	}
	return len(l.Models) == 0
}

// matches reports whether a text is a pattern's, in which * stands for any
// characters.
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

// fields adds what the audit log shows of limits.
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

// AddressList returns the networks as ParseAddresses reads them: a single address
// without its length.
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

// MicroUSD returns an amount of dollars in millionths. The error is an Invalid of a field:
// less than a millionth is no budget, and must not be taken for "as much as one likes".
// What is out of range stays so, and is refused by Validate.
func MicroUSD(field string, dollars float64) (int64, error) {
	if math.IsNaN(dollars) || dollars != 0 && math.Abs(dollars) < 1e-6 {
		return 0, Invalid{Field: field, Message: fmt.Sprintf("must be an amount from 0.000001 to %d, or 0 for no budget", maxMicroUSD/1_000_000)}
	}
	return int64(math.Round(min(max(dollars, -1), 1e12) * 1e6)), nil
}

// USD writes an amount of millionths of a dollar with as many decimals as it needs,
// at least two.
func USD(micro int64) string {
	text := strconv.FormatFloat(float64(micro)/1e6, 'f', 6, 64)
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 3 {
		text = text[:len(text)-1]
	}
	return text
}

// SpendSpan returns when the day and the month of a moment began: budgets are
// counted from there, in UTC.
func SpendSpan(at time.Time) (day, month time.Time) {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC), time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}
