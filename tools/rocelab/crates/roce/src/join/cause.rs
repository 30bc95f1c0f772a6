// SPDX-License-Identifier: GPL-2.0-or-later
//! Why a frame has no record at one end, or a record has no frame.

macro_rules! causes {
    ($(#[$doc:meta])* $name:ident { $($(#[$word:meta])* $variant:ident $text:literal $clear:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$word])* $variant),* }

        impl $name {
            /// All values, in the order of `as usize`.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// Whether this accounts for the packet, if only as undecidable.
            #[must_use]
            pub const fn explained(self) -> bool {
                match self { $(Self::$variant => $clear),* }
            }
        }
    };
}

causes! {
    /// A packet's way from the sender's driver to the capture.
    Sent {
        /// The frame has a record.
        Matched "matched" true,
        /// One more frame with the same bytes: the network duplicated it.
        Copy "copy" true,
        /// A frame with a wrong ICRC: its bytes do not identify the packet.
        Damaged "damaged" true,
        /// A frame whose sender is not traced.
        NotTraced "not_traced" true,
        /// A frame that the sender's probe skipped, by sampling or a filter.
        NotRecorded "not_recorded" true,
        /// A frame whose record the probe lost, by its own account.
        RecordLost "record_lost" true,
        /// A record that never reached the network device: dropped by netfilter, the neighbour
        /// queue or the queueing discipline.
        BeforeDevice "before_device" true,
        /// A record of a packet that the device got, without a frame: lost before the capture point.
        BeforeCapture "before_capture" true,
        /// A record of a packet that the driver dropped instead of sending.
        Dropped "dropped" true,
        /// A record of a packet that stayed on its host.
        Loopback "loopback" true,
        /// Frames and records with equal bytes but in different numbers: undecidable.
        Ambiguous "ambiguous" true,
        /// The receiver has a record of it, but the capture has no frame.
        NotCaptured "not_captured" false,
        /// No known cause.
        Unexplained "unexplained" false,
    }
}

causes! {
    /// A packet's way from the capture to the receiver's driver.
    Received {
        /// The frame has a record.
        Matched "matched" true,
        /// One more record with the same bytes: the network duplicated it after the capture point.
        Copy "copy" true,
        /// The receiver's driver dropped it on arrival, by its own record.
        Dropped "dropped" true,
        /// The frame has a wrong ICRC: the receiver's driver drops it.
        Damaged "damaged" true,
        /// The receiver is not traced.
        NotTraced "not_traced" true,
        /// The receiver's probe skipped it, by sampling or a filter.
        NotRecorded "not_recorded" true,
        /// Multicast has any number of receivers and is not joined.
        Multicast "multicast" true,
        /// No record: lost after the capture point, or dropped by the driver on arrival.
        BehindCapture "behind_capture" true,
        /// No record, and the probe lost some: either the packet or its record was lost.
        LostOrRecordLost "lost_or_record_lost" true,
        /// A record of a packet that stayed on its host.
        Loopback "loopback" true,
        /// Frames and records with equal bytes but in different numbers: undecidable.
        Ambiguous "ambiguous" true,
        /// A record of a packet of which the capture has no frame.
        NotCaptured "not_captured" false,
    }
}
