package billing

import (
	"context"
	"fmt"
	"time"

	"palimpsest/tenants"
)

// tell writes to those who pay about a trouble, once for each.
func (s *Service) tell(ctx context.Context, account Account, periodEnd time.Time) error {
	if s.deps.Mail == nil {
		return nil
	}
	trouble, subject, text := s.trouble(account, periodEnd)
	if trouble == account.Told {
		return nil
	}
	return s.deps.Store.Tell(ctx, account.Workspace, trouble, func(tenant tenants.Tenant, to []string) error {
		if trouble == "" {
			return nil
		}
		for _, address := range to {
			if err := s.deps.Mail(ctx, tenant, tenants.Mail{To: address, Subject: subject, Text: text}); err != nil {
				return err
			}
		}
		return nil
	})
}

// trouble names what people are to be told of, and says it; empty if nothing is wrong.
func (s *Service) trouble(account Account, periodEnd time.Time) (name, subject, text string) {
	page := s.config.PublicURL + "/billing"
	deadline := account.Deadline(s.config.Grace)
	switch {
	case account.Restraint.Reason == tenants.PaymentFailed:
		return "restrained " + account.PastDueSince.UTC().Format(time.RFC3339), "Your requests now pass uncompressed",
			fmt.Sprintf("A payment for your workspace failed on %s and is still open. Since %s your requests go to your provider "+
				"uncompressed: nothing is blocked, nothing stored is lost.\n\nUpdate the payment method: %s\n", day(account.PastDueSince), day(deadline), page)
	case !deadline.IsZero():
		return "owed " + account.PastDueSince.UTC().Format(time.RFC3339), "A payment failed",
			fmt.Sprintf("A payment for your workspace failed on %s. Everything works as before until %s. From then on your requests go to "+
				"your provider uncompressed; they are never blocked.\n\nUpdate the payment method: %s\n", day(account.PastDueSince), day(deadline), page)
	case account.Restraint.Reason == tenants.QuotaUsed:
		return "quota " + periodEnd.Format(time.DateOnly), "This month's exchanges are used up",
			fmt.Sprintf("Your workspace has used the %d exchanges that the plan Free has in a month. Until %s your requests go to your provider "+
				"uncompressed; they are never blocked.\n\nSee the plans: %s\n", FreeExchanges, day(periodEnd), page)
	}
	return "", "", ""
}

// day returns a date as people read it, in UTC.
func day(at time.Time) string { return at.UTC().Format("2 January 2006") }
