//! Secrets that are sealed under another key.

use switchward_state::catalogue::{CatalogueEvent, Reseal, Tenancy};
use switchward_state::delivery::{DeliveryEvent, SourceSecret, WebhookSource, WebhookSourceFact};
use switchward_state::limits::RESEALED_MAX;
use switchward_state::seal::Sealed;
use switchward_state::{Key, ReadRows as _, Reply};

use crate::turn::{Stop, Turn, check_size};

/// A secret that was changed meanwhile stays as it is. The tenant's copies in the shards follow, as after every change.
pub(crate) fn run(turn: &mut Turn<'_, '_>, reseal: &Reseal) -> Result<Reply, Stop> {
    check_size("secrets", reseal.secrets.len(), RESEALED_MAX, "secrets")?;
    check_size("sources", reseal.sources.len(), RESEALED_MAX, "sources")?;
    let tenant = turn.tenant();
    let known = turn.rows.tenancy_at(&Key::tenancy_record(tenant))?.map(|known| Tenancy::clone(&known));
    if let Some(known) = known {
        let mut tenancy = Tenancy { revision: known.revision + 1, ..known.clone() };
        tenancy.keys.iter_mut().for_each(|key| replace(key, &reseal.secrets));
        let endpoints = tenancy.endpoints.iter_mut().flat_map(|one| &mut one.secrets);
        endpoints.for_each(|secret| replace(&mut secret.sealed, &reseal.secrets));
        if tenancy.sealed().ne(known.sealed()) {
            turn.emit(CatalogueEvent::TenancyPut(tenancy))?;
        }
    }
    for name in &reseal.sources {
        let Some(source) = turn.rows.webhook_source_at(&Key::webhook_source(tenant, name))? else { continue };
        let source = WebhookSource::clone(&source);
        let mut secrets = source.secrets.clone();
        secrets.iter_mut().for_each(|SourceSecret { sealed, .. }| replace(sealed, &reseal.secrets));
        if secrets != source.secrets {
            // Its revision stays: for those who use it nothing has changed.
            let source = WebhookSource { secrets, ..source };
            turn.emit(DeliveryEvent::WebhookSources(WebhookSourceFact::Put { source }))?;
        }
    }
    Ok(Reply::Done)
}

fn replace(sealed: &mut Sealed, secrets: &[(Sealed, Sealed)]) {
    if let Some((_, after)) = secrets.iter().find(|(before, _)| before == sealed) {
        *sealed = after.clone();
    }
}
