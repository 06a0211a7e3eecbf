package incident

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// webhook posts notifications in the format of Alertmanager's webhook receiver,
// version 4 (Alertmanager: Configuration, webhook_config).
type webhook struct {
	*poster
	secret string
}

// message is what a webhook of Alertmanager carries, version 4.
type message struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            string            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []messageAlert    `json:"alerts"`
}

type messageAlert struct {
	Status string `json:"status"`
	alert
	Fingerprint string `json:"fingerprint"`
}

// Headers that sign a webhook's body.
const (
	timestampHeader = "X-Curfew-Timestamp"
	signatureHeader = "X-Curfew-Signature"
)

// send posts a once, signed if there is a secret.
func (w *webhook) send(ctx context.Context, a *notice) error {
	body := encode(a.message())
	header := http.Header{}
	if w.secret != "" {
		stamp := strconv.FormatInt(time.Now().Unix(), 10)
		header.Set(timestampHeader, stamp)
		mac := hmac.New(sha256.New, []byte(w.secret)) // over the timestamp, a dot and the body
		mac.Write(append([]byte(stamp+"."), body...))
		header.Set(signatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	return w.do(ctx, http.MethodPost, body, header)
}

// message is an incident as a group of its own.
func (n *notice) message() message {
	alert := n.alert()
	return message{
		Version:           "4",
		GroupKey:          "{}/{rule=" + strconv.Quote(n.rule.Name) + "}:" + format(n.names),
		Status:            n.status(),
		Receiver:          "curfew",
		GroupLabels:       n.names,
		CommonLabels:      alert.Labels,
		CommonAnnotations: alert.Annotations,
		ExternalURL:       n.source.externalURL,
		Alerts:            []messageAlert{{n.status(), alert, n.ID}},
	}
}
