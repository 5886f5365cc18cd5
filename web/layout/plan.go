package layout

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/billing"
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// AskAboutBilling names the people to ask, for readers who may not see the bills.
const AskAboutBilling = "Ask an owner of the workspace, or the person who pays for it."

// planKey is the request's key for its workspace's plan.
const planKey = "palimpsest.plan"

// WithPlan makes the response's page show the workspace's plan beside the navigation, and its warning at the
// top.
func WithPlan(c echo.Context, overview billing.Overview) { c.Set(planKey, &overview) }

// Plan returns the plan of WithPlan; nil if billing is off or the plan is unknown.
func Plan(c echo.Context) *billing.Overview {
	overview, _ := c.Get(planKey).(*billing.Overview)
	return overview
}

// warning returns the warning about the workspace's plan; "" without one.
func (f Frame) warning() string {
	if f.plan == nil {
		return ""
	}
	warning, is := f.plan.Warning()
	day := components.DayIn(warning.On, f.zone)
	switch {
	case !is:
		return ""
	case warning.Reason == tenants.QuotaUsed:
		return "The " + components.Count(f.plan.Quota) + " exchanges of the Free plan are used up for this month. Until " + day +
			" requests pass uncompressed; they are never blocked."
	case warning.Now:
		return "A payment failed. Since " + day + " requests pass uncompressed; they are never blocked."
	}
	return "A payment failed. Everything works as before until " + day + "; then requests pass uncompressed. They are never blocked."
}

// planShare returns the used part of the quota, in percent.
func (f Frame) planShare() int64 { return min(100, f.plan.Used*100/max(1, f.plan.Quota)) }

// planNote is the text below the plan's bar.
func (f Frame) planNote() string {
	if f.plan.Quota > 0 {
		return strconv.FormatInt(f.planShare(), 10) + "% of " + components.Count(f.plan.Quota)
	}
	return "Plan " + f.plan.Plan.Title()
}

// planEnd tells when the count restarts or ends.
func (f Frame) planEnd() string {
	if !f.plan.EndsAt.IsZero() && f.plan.Status.IsLive() {
		return "ends " + f.plan.EndsAt.In(f.zone).Format("2 Jan")
	}
	return "renews " + f.plan.To.In(f.zone).Format("2 Jan")
}
