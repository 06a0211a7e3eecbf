// Package metrics shows the broker by the names that RabbitMQ's dashboards and alerts use (RabbitMQ: Monitoring with Prometheus and Grafana):
// as totals, for each object, and in as much detail as a scrape requests. Everything is counted elsewhere; a scrape only reads it. The metrics of
// single objects are written as they are made, so a million queues take as much memory as one.
package metrics
