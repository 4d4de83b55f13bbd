CREATE TABLE canal_locks (name text PRIMARY KEY, width int NOT NULL, built date);
INSERT INTO canal_locks (name, width) VALUES ('upper', 6);
DELETE FROM canal_locks WHERE name = 'upper';
UPDATE accounts SET locked = true WHERE id = 7;
SELECT * FROM accounts WHERE id = 7 FOR UPDATE SKIP LOCKED;
