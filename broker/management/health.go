package management

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
)

// healthy is the answer of a check that found nothing.
func (q *request) healthy() error { return q.answer(object{"status": "ok"}) }

// failed is the answer of a check that did.
func (q *request) failed(reason string, more object) error {
	o := object{"status": "failed", "reason": reason}
	for key, v := range more {
		o[key] = v
	}
	answerJSON(q.w, http.StatusServiceUnavailable, o)
	return nil
}

// checkNode is the check of before RabbitMQ 3.8.10, which old monitoring asks for. It
// says what is wrong with status 200.
func (q *request) checkNode() error {
	if q.param("node") != "" {
		if err := q.thisNode(); err != nil {
			return err
		}
	}
	memory, disk := q.api.b.Alarms()
	var alarms []string
	if memory {
		alarms = append(alarms, "memory")
	}
	if disk {
		alarms = append(alarms, "disk")
	}
	if len(alarms) > 0 {
		return q.answer(object{"status": "failed", "reason": "resource alarm(s) in effect:[" + strings.Join(alarms, ",") + "]"})
	}
	return q.healthy()
}

// checkAlarms is for alarms and local-alarms: one node is the cluster.
func (q *request) checkAlarms() error {
	memory, disk := q.api.b.Alarms()
	alarms := []object{}
	for _, one := range []struct {
		on       bool
		resource string
	}{{memory, "memory"}, {disk, "disk"}} {
		if one.on {
			alarms = append(alarms, object{"node": q.api.Node, "resource": one.resource})
		}
	}
	if len(alarms) == 0 {
		return q.healthy()
	}
	return q.failed("There are alarms in effect in the cluster", object{"alarms": alarms})
}

func (q *request) checkCritical() error {
	return q.answer(object{"status": "ok", "reason": "single node cluster"})
}

func (q *request) checkPort() error {
	port, err := strconv.Atoi(q.param("port"))
	if err != nil {
		return bad("Invalid port")
	}
	ports := []int{}
	for _, l := range q.api.Listeners {
		ports = append(ports, l.Port)
	}
	if slices.Contains(ports, port) {
		return q.answer(object{"status": "ok", "port": port})
	}
	return q.failed("No active listener", object{"missing": port, "ports": ports})
}

// protocolNames are other words for a listener's protocol.
var protocolNames = map[string]string{
	"amqp091": "amqp", "amqp0.9.1": "amqp", "amqp0-9-1": "amqp", "amqps": "amqp/ssl", "amqp-tls": "amqp/ssl", "prometheus": "http/prometheus",
}

func (q *request) checkProtocol() error {
	asked := q.param("protocol")
	wanted := asked
	if name, ok := protocolNames[strings.ToLower(asked)]; ok {
		wanted = name
	}
	protocols := []string{}
	for _, l := range q.api.Listeners {
		protocols = append(protocols, l.Protocol)
	}
	if slices.Contains(protocols, wanted) {
		return q.answer(object{"status": "ok", "protocol": asked})
	}
	return q.failed("No active listener", object{"missing": asked, "protocols": protocols})
}

// checkService: AMQP clients are served.
func (q *request) checkService() error {
	for _, l := range q.api.Listeners {
		if strings.HasPrefix(l.Protocol, "amqp") {
			return q.healthy()
		}
	}
	return q.failed("There are no active AMQP listeners", nil)
}

// checkConnections: another one is let in.
func (q *request) checkConnections() error {
	most, _ := q.api.Server.Full()
	now := q.api.Server.Connections()
	if now >= most {
		return q.failed("node connection limit is reached", object{"limit": most, "connections": now})
	}
	return q.answer(object{"status": "ok", "limit": most, "connections": now})
}

// certificateUnits are the lengths of time that can be asked about.
var certificateUnits = map[string]time.Duration{"days": day, "weeks": 7 * day, "months": 30 * day, "years": 365 * day}

const day = 24 * time.Hour

// checkCertificates: the listeners' certificate is good for so long.
func (q *request) checkCertificates() error {
	unit, ok := certificateUnits[q.param("unit")]
	if !ok {
		return bad("Time unit not recognised. Supported units: days, weeks, months, years.")
	}
	n, err := strconv.Atoi(q.param("within"))
	if err != nil || n < 1 || n > 1000 {
		return bad("Invalid expiration value.")
	}
	if q.api.CertificateFile == "" {
		return q.healthy()
	}
	ends, err := certificateEnd(q.api.CertificateFile)
	if err != nil {
		return q.failed("The certificate cannot be read: "+err.Error(), nil)
	}
	if ends.After(q.api.Now().Add(time.Duration(n) * unit)) {
		return q.healthy()
	}
	return q.failed("Certificates expiring", object{"expired": []object{{
		"node": q.api.Node, "protocol": "amqp/ssl", "certfile": q.api.CertificateFile, "certfile_expires_on": []string{ends.UTC().Format(time.RFC3339)},
	}}})
}

// certificateEnd is until when the first certificate of a PEM file is good.
func certificateEnd(file string) (time.Time, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, err
		}
		return cert.NotAfter, nil
	}
	return time.Time{}, errors.New("no certificate in it")
}

// alivenessQueue is declared by the aliveness test, as in RabbitMQ.
const alivenessQueue = "aliveness-test"

// aliveness sends one message through a queue.
func (q *request) aliveness() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	declare := broker.QueueDeclare{}
	queue, err := q.declare(vh, alivenessQueue, declare)
	if err != nil {
		return err
	}
	if _, err := q.publishTo(vh, &broker.Publication{RoutingKey: []byte(alivenessQueue), Properties: new(amqp.Properties).Append(nil), Body: []byte("test_message")}); err != nil {
		return err
	}
	if got, err := queue.Get(true, func(*broker.Delivery) {}); err != nil || !got {
		return q.failed("aliveness-test failed: the message did not arrive", nil)
	}
	return q.healthy()
}
