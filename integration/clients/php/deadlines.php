<?php
// One side of a deadline run, with php-amqplib. The roles and their lines are those of ../pika/deadlines.py.
require_once 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

function nowMicros(): int
{
    return (int) (microtime(true) * 1e6);
}

function declareQueues($channel, $queue, $dlx, $dlq): void
{
    $channel->exchange_declare($dlx, 'direct', false, true, false);
    $channel->queue_declare($dlq, false, true, false, false);
    $channel->queue_bind($dlq, $dlx, $queue);
    $channel->queue_declare($queue, false, true, false, false, false, new AMQPTable(['x-dead-letter-exchange' => $dlx]));
}

function publish($channel, $queue): void
{
    $channel->confirm_select();
    $channel->set_nack_handler(function ($message) {
        throw new RuntimeException('message ' . $message->getBody() . ' was refused');
    });
    while (($line = fgets(STDIN)) !== false) {
        [$number, $ttl] = explode(' ', trim($line));
        $message = new AMQPMessage($number, ['expiration' => $ttl, 'delivery_mode' => 2, 'message_id' => $number]);
        $before = nowMicros();
        $channel->basic_publish($message, '', $queue, true);
        $channel->wait_for_pending_acks_returns(30);
        echo "sent $number $ttl $before ", nowMicros(), "\n";
    }
}

function collect($channel, $queue, $count): void
{
    $channel->basic_qos(0, 500, false);
    $left = (int) $count;
    $channel->basic_consume($queue, '', false, false, false, false, function ($message) use (&$left) {
        $at = nowMicros();
        $message->ack();
        echo 'got ', $message->getBody(), " $at\n";
        $left--;
    });
    echo "ready\n";
    while ($left > 0) {
        $channel->wait();
    }
}

function get($channel, $queue): void
{
    $message = $channel->basic_get($queue);
    if ($message === null) {
        echo "empty\n";
        return;
    }
    echo 'head ', $message->getBody(), "\n";
    $message->nack(true);
}

[, $role, $url] = $argv;
$roles = ['declare' => 'declareQueues', 'publish' => 'publish', 'collect' => 'collect', 'get' => 'get'];
$at = parse_url($url);
$connection = new AMQPStreamConnection($at['host'], $at['port'], $at['user'], $at['pass']); // logs in with AMQPLAIN
$roles[$role]($connection->channel(), ...array_slice($argv, 3));
$connection->close();
