package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	webhookTimeout = 5 * time.Second
	maxAnswer      = 64 << 10
)

// webhook posts notifications in the format of Alertmanager's webhook receiver,
// version 4 (Alertmanager: Configuration, webhook_config).
type webhook struct {
	url         string
	instance    string
	externalURL string
	client      *http.Client
}

func newWebhook(u *url.URL, o Options) *webhook {
	return &webhook{
		url:         u.String(),
		instance:    o.Instance,
		externalURL: o.ExternalURL,
		client: &http.Client{
			Timeout: webhookTimeout,
			// A redirect could lead into a network the operator did not name.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (*webhook) name() string { return "webhook" }

// send posts n once. An answer other than 2xx is an error, and permanent unless
// it is 429 or 5xx; Retry-After in seconds is obeyed.
func (w *webhook) send(ctx context.Context, n notification) error {
	body, err := json.Marshal(w.message(n))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("alert: encode: %w", err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("alert: post: %w", withoutURL(err)))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "curfew")
	answer, err := w.client.Do(req)
	if err != nil {
		return fmt.Errorf("alert: post: %w", withoutURL(err))
	}
	defer answer.Body.Close()
	// Read so that the connection can be used again; a longer answer costs it.
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	return judge(answer)
}

func judge(answer *http.Response) error {
	code := answer.StatusCode
	err := fmt.Errorf("alert: post: the receiver answers %d", code)
	switch {
	case code/100 == 2:
		return nil
	case code != http.StatusTooManyRequests && code/100 != 5:
		return backoff.Permanent(err)
	}
	if seconds, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && seconds >= 0 {
		return errors.Join(err, backoff.RetryAfter(seconds))
	}
	return err
}

// withoutURL drops the address from err: it may hold a secret, and errors are logged.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
