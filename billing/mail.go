package billing

import (
	"context"
	"fmt"
	"time"

	"palimpsest/tenants"
)

// tell mails a problem to the people who pay, once for each problem.
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

// trouble returns the current problem's name and the mail about it; "" without a problem.
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

// day formats a date in UTC.
func day(at time.Time) string { return at.UTC().Format("2 January 2006") }
