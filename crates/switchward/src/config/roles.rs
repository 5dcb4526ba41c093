//! What the roles of a process ask of its configuration.

use super::Config;
use crate::mail_config::MailConfig;
use crate::member::{ProcessKind, ProcessRole};

/// Checks whether the rest of the configuration fits what the process does.
pub(super) fn check(config: &Config) -> anyhow::Result<()> {
    let receives_mail = config.mail.as_ref().is_some_and(MailConfig::reads_replies);
    match config.kind() {
        ProcessKind::Gateway => {
            anyhow::ensure!(
                !receives_mail,
                "mail.in: a gateway passes on mail by POST /v1/mail alone; configure mail.in on the servers"
            );
            let absent = config.tenants.is_empty() && config.mail.is_none() && config.redis.is_none();
            anyhow::ensure!(
                absent,
                "cluster.roles: a gateway has no tenants, no mail and no redis; configure them on the servers"
            );
        }
        ProcessKind::Delivery => {
            anyhow::ensure!(
                !receives_mail,
                "mail.in: a delivery process receives no mail; configure mail.in on the servers, or send mail to \
                 POST /v1/mail of a server or a gateway"
            );
            anyhow::ensure!(
                config.tenants.is_empty() && config.tls.is_none(),
                "cluster.roles: a delivery process has no tenants and no port for clients; configure tenants and tls on the \
                 servers and gateways"
            );
            anyhow::ensure!(
                config.redis.is_some() && config.delivery.enabled,
                "redis: a delivery process takes its jobs from the Redis of the servers, and delivery.enabled must be true"
            );
        }
        ProcessKind::Server => anyhow::ensure!(
            config.redis.is_some() || !config.delivery.enabled || config.has(ProcessRole::Delivery),
            "redis: without the role delivery, jobs reach the delivery processes by a Redis alone"
        ),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn jobs_go_to_other_processes_by_redis_alone() {
        let files = "ca_file = \"a\"\ncert_file = \"b\"\nkey_file = \"c\"\npeers = [\"1=a:1\"]\n";
        let redis = "[redis]\nurl = \"redis://a\"\n";
        let with = |head: &str, roles: &str, more: &str| {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("switchward.toml");
            std::fs::write(&file, format!("{head}[cluster]\nroles = {roles}\n{files}{more}")).unwrap();
            read(Some(&file), &[])
        };
        let refused = |result: anyhow::Result<Config>| result.unwrap_err().to_string();
        let delivery = with(redis, r#"["delivery"]"#, "").unwrap();
        assert_eq!((delivery.kind(), delivery.has(ProcessRole::Gateway)), (ProcessKind::Delivery, false));
        assert!(refused(with("", r#"["delivery"]"#, "")).starts_with("redis"));
        let off = format!("{redis}[delivery]\nenabled = false\n");
        assert!(refused(with(&off, r#"["delivery"]"#, "")).starts_with("redis"));
        let tenant = "[[tenants]]\nname = \"acme\"\nadmin_key_file = \"k\"\n";
        assert!(
            refused(with(&format!("{redis}{tenant}"), r#"["delivery"]"#, "")).starts_with("cluster.roles")
        );
        let mail = "[mail]\nfrom = \"a@acme.example\"\nreply = \"r+{token}@acme.example\"\nsmtp = { host = \"a\" }\n";
        assert!(with(&format!("{redis}{mail}"), r#"["delivery"]"#, "").is_ok());
        let lmtp = format!("{redis}{mail}[mail.in]\nlmtp = \"127.0.0.1:2400\"\n");
        let why = refused(with(&lmtp, r#"["delivery"]"#, ""));
        assert!(why.starts_with("mail.in: a delivery process receives no mail"), "{why}");
        let server = "server = 2\nlisten = \"127.0.0.1:1\"\n";
        let data = "data_dir = \"/tmp/a\"\n";
        let engine = |head: &str| with(&format!("{data}{head}"), r#"["gateway", "engine"]"#, server);
        assert_eq!(engine(redis).unwrap().kind(), ProcessKind::Server);
        assert!(refused(engine("")).starts_with("redis"));
        assert!(engine("[delivery]\nenabled = false\n").is_ok());
    }

    #[test]
    fn mail_comes_in_at_servers_whichever_their_roles() {
        let with = |head: &str, roles: &str, more: &str, way: &str| {
            let mail = "from = \"a@acme.example\"\nreply = \"r+{token}@acme.example\"\n\
                        pages = \"https://acme.example\"\n";
            let text = format!(
                "{head}[redis]\nurl = \"redis://a\"\n[mail]\n{mail}smtp = {{ host = \"smtp.acme.example\" }}\n{way}\
                 [cluster]\nroles = {roles}\nca_file = \"a\"\ncert_file = \"b\"\nkey_file = \"c\"\n\
                 peers = [\"1=a:1\"]\n{more}"
            );
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("switchward.toml");
            std::fs::write(&file, text).unwrap();
            read(Some(&file), &[])
        };
        let (data, member) = ("data_dir = \"/tmp/a\"\n", "server = 2\nlisten = \"127.0.0.1:1\"\n");
        let imap = "[mail.in.imap]\nhost = \"imap.acme.example\"\nuser = \"a\"\npassword_file = \"p\"\n\
                    done_folder = \"Done\"\nquarantine_folder = \"Quarantine\"\n";
        for way in ["[mail.in]\nlmtp = \"127.0.0.1:2400\"\n", imap] {
            for roles in [r#"["engine"]"#, r#"["engine", "delivery"]"#, r#"["gateway", "engine"]"#] {
                assert!(with(data, roles, member, way).is_ok(), "{roles} {way}");
            }
            for (role, remedy) in [("gateway", "passes on mail by POST"), ("delivery", "receives no mail")] {
                let why = with("", &format!("[\"{role}\"]"), "", way).unwrap_err().to_string();
                assert!(why.starts_with("mail.in: ") && why.contains(remedy), "{why}");
            }
        }
        assert!(with("", r#"["delivery"]"#, "", "").is_ok());
    }
}
